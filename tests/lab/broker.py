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


"""The RabbitMQ of a lab."""

import signal

from tests.lab import processes
from tests.lab import settings as lab_settings
from tests.lab import waiting

PORT = 5672
URL = 'rabbit://guest:guest@%s:%d/' % (
    lab_settings.ADDRESSES[lab_settings.CONTROLLER], PORT)
SERVER = '/usr/lib/rabbitmq/bin/rabbitmq-server'


class Broker(object):
    """One node; its epmd runs in the lab's network too.

    :param settings: of the lab
    :param machine: Namespace in which it runs
    """

    def __init__(self, settings, machine):
        self._machine = machine
        self._folder = settings.state / 'rabbitmq'
        self._configuration = settings.etc / 'rabbitmq.conf'
        self.process = processes.Process(
            'rabbitmq', [SERVER], settings.state / 'pid', settings.logs,
            wrap=machine.enter,
            env={'HOME': str(self._folder),
                 'RABBITMQ_NODENAME': 'lab@localhost',
                 'RABBITMQ_MNESIA_BASE': str(self._folder),
                 'RABBITMQ_LOG_BASE': str(settings.logs),
                 'RABBITMQ_PID_FILE': str(self._folder / 'pid'),
                 'RABBITMQ_CONFIG_FILE': str(self._configuration),
                 'RABBITMQ_CONF_ENV_FILE': '/dev/null',
                 'RABBITMQ_ENABLED_PLUGINS_FILE': str(
                     self._folder / 'plugins'),
                 # schedulers that wait must not spin on a small machine
                 'RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS': '+sbwt none'})

    def up(self):
        self._folder.mkdir()
        self._configuration.write_text(
            'listeners.tcp.1 = 0.0.0.0:%d\n'
            'loopback_users = none\n' % PORT)
        self.process.start()
        waiting.wait_until(
            lambda: self._machine.listens(PORT),
            'RabbitMQ listens; see %s' % self.process.log, 90)

    def down(self):
        # nothing in it is kept
        self.process.stop(signal.SIGKILL)
