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


"""A Neutron without networks: it has no ports, and refuses to make any.

    neutron_stub.py PORT

Nova asks for an instance's ports also when it has none.
"""

import http.server
import json
import socketserver
import sys

COLLECTIONS = ('floatingips', 'networks', 'ports', 'security-groups',
               'subnets')


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def do_GET(self):
        resource = self.path.split('?')[0].rstrip('/').rsplit('/', 1)[-1]
        if resource == 'extensions':
            self.answer(200, {'extensions': [
                {'alias': 'binding', 'name': 'Port Binding'},
                {'alias': 'binding-extended',
                 'name': 'Port Bindings Extended'}]})
        elif resource in COLLECTIONS:
            self.answer(200, {resource.replace('-', '_'): []})
        else:
            self.answer(404, {'NeutronError': {
                'type': 'NotFound', 'detail': '',
                'message': 'the stub has no %s' % self.path}})

    def refuse(self):
        self.rfile.read(int(self.headers.get('Content-Length') or 0))
        self.answer(501, {'NeutronError': {
            'type': 'NotImplemented', 'detail': '',
            'message': 'the stub cannot %s' % self.command}})

    do_POST = do_PUT = do_DELETE = refuse

    def answer(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


if __name__ == '__main__':
    server = Server(('0.0.0.0', int(sys.argv[1])), Handler)  # noqa: S104
    server.serve_forever()
