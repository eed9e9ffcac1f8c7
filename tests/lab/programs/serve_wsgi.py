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


"""Serve an OpenStack API, one thread for each request.

    serve_wsgi.py MODULE PORT [ARGUMENT ...]

MODULE has the WSGI application, as in ``nova.wsgi.osapi_compute``. It finds
the arguments on its command line.
"""

import importlib
import socketserver
import sys
import tempfile
from wsgiref import simple_server


class Server(socketserver.ThreadingMixIn, simple_server.WSGIServer):
    daemon_threads = True
    request_queue_size = 64


class Handler(simple_server.WSGIRequestHandler):

    def address_string(self):
        # the base class asks for the name of the client's address
        return self.client_address[0]

    def parse_request(self):
        """Take in a body in chunks, of which wsgiref knows nothing.

        Nova sends images to Glance so.
        """
        if not super(Handler, self).parse_request():
            return False
        if self.headers.get('Transfer-Encoding', '').lower() == 'chunked':
            body = tempfile.TemporaryFile()  # noqa: SIM115 (read later)
            while True:
                size = int(self.rfile.readline().split(b';')[0], 16)
                body.write(self.rfile.read(size))
                self.rfile.readline()
                if not size:
                    break
            del self.headers['Transfer-Encoding']
            self.headers['Content-Length'] = str(body.tell())
            body.seek(0)
            self.rfile = body
        return True


def main():
    module, port = sys.argv[1:3]
    # oslo.config reads the arguments of the process when the application is
    # made
    del sys.argv[1:3]
    loaded = importlib.import_module(module)
    application = getattr(loaded, 'application', None)
    if application is None:
        application = loaded.init_application()
    simple_server.make_server('0.0.0.0', int(port),  # noqa: S104
                              application, Server, Handler).serve_forever()


if __name__ == '__main__':
    main()
