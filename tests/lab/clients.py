# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.


"""HTTP clients for the APIs of a lab, from outside of its network."""

import http.client
import json

from tests.lab import settings as lab_settings

TIMEOUT = 120


class ApiError(Exception):
    """An API refused a request.

    :ivar status: HTTP status
    """

    def __init__(self, method, path, status, body):
        super(ApiError, self).__init__('%s %s: HTTP %d %s' % (
            method, path, status, body))
        self.status = status
        self.body = body


class _Connection(http.client.HTTPConnection):
    """A connection whose socket is made inside of a namespace."""

    machine = None

    def connect(self):
        with self.machine.network():
            super(_Connection, self).connect()


def open_token():
    """The token of a lab in which everyone is let in."""
    return lab_settings.TOKEN


class Client(object):
    """Of one API.

    :param machine: Namespace of the controller
    :param port: of the API
    :param prefix: of all paths
    :param version: value of the header OpenStack-API-Version
    :param token: function that returns a token, called for each request; None
        for requests without one
    """

    def __init__(self, machine, port, prefix='', version=None,
                 token=open_token):
        self._machine = machine
        self._port = port
        self._prefix = prefix
        self._token = token
        self._headers = {'Accept': 'application/json'}
        if version:
            self._headers['OpenStack-API-Version'] = version

    def call(self, method, path, body=None):
        """Make a request.

        :param body: what can be written as JSON; or an open file of bytes
        :returns: the answer: read from JSON, or None when it is empty
        :raises ApiError: the status is 400 or above
        :raises OSError: nobody answers
        """
        return self.exchange(method, path, body)[0]

    def exchange(self, method, path, body=None):
        """Make a request.

        :returns: (what :meth:`call` returns, headers of the answer)
        """
        headers = dict(self._headers)
        if self._token:
            headers['X-Auth-Token'] = self._token()
        if hasattr(body, 'read'):
            headers['Content-Type'] = 'application/octet-stream'
            headers['Content-Length'] = str(body.seek(0, 2))
            body.seek(0)
        elif body is not None:
            headers['Content-Type'] = 'application/json'
            body = json.dumps(body)
        connection = _Connection(
            lab_settings.ADDRESSES[lab_settings.CONTROLLER], self._port,
            timeout=TIMEOUT)
        connection.machine = self._machine
        try:
            connection.request(method, self._prefix + path, body, headers)
            answer = connection.getresponse()
            data = answer.read()
        finally:
            connection.close()
        try:
            parsed = json.loads(data.decode()) if data else None
        except ValueError:
            parsed = data.decode(errors='replace')
        if answer.status >= 400:
            raise ApiError(method, path, answer.status, parsed)
        return parsed, answer.headers

    def get(self, path):
        return self.call('GET', path)
