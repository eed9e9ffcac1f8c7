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


"""Stands in for keystonemiddleware's auth_token: everyone is an admin.

A paste filter. It fills in what auth_token takes from a valid token of a user
with every role.
"""

IDENTITY = {
    'X_IDENTITY_STATUS': 'Confirmed',
    'X_USER_ID': '5e1f0000000000000000000000000001',
    'X_USER_NAME': 'lab',
    'X_USER_DOMAIN_ID': 'default',
    'X_PROJECT_ID': '5e1f0000000000000000000000000002',
    'X_PROJECT_NAME': 'lab',
    'X_PROJECT_DOMAIN_ID': 'default',
    # what releases up to Train read
    'X_USER': '5e1f0000000000000000000000000001',
    'X_TENANT_ID': '5e1f0000000000000000000000000002',
    'X_ROLE': 'admin,manager,member,reader,service',
    'X_ROLES': 'admin,manager,member,reader,service',
    'X_IS_ADMIN_PROJECT': 'True',
    'X_SERVICE_CATALOG': '[]',
}


def filter_factory(global_conf, **local_conf):
    """Entry point of paste.deploy."""
    def make_filter(app):
        def call(environ, start_response):
            environ.setdefault('HTTP_X_AUTH_TOKEN', 'lab')
            for name, value in IDENTITY.items():
                environ['HTTP_' + name] = value
            return app(environ, start_response)
        return call
    return make_filter
