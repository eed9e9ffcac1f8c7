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

"""How the services of the full form know each other."""

from tests.lab import settings as lab_settings

PASSWORD = 'secret'  # noqa: S105
REGION = 'lab'
#: Role of all services' users. A request that one service makes for a user has
#: the service's token, too.
SERVICE = 'service'


def credentials(settings, user):
    """How a service tells Keystone who it is: {option: value}."""
    return {
        'auth_type': 'password',
        'auth_url': settings.url(lab_settings.KEYSTONE_PORT) + '/v3',
        'username': user,
        'password': PASSWORD,
        'project_name': 'service',
        'user_domain_name': 'Default',
        'project_domain_name': 'Default',
        'region_name': REGION,
    }


def middleware(settings, user):
    """How the API of a service checks tokens: {section: {option: value}}."""
    return {'keystone_authtoken': dict(
        credentials(settings, user),
        www_authenticate_uri=settings.url(lab_settings.KEYSTONE_PORT) + '/v3',
        service_token_roles=SERVICE, service_token_roles_required=True)}
