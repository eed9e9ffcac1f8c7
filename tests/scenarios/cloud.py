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

"""What a scenario needs to reach of a cloud."""

import abc


class Violation(AssertionError):
    """A rule is broken: what the guard is there to prevent."""


class TooLate(Exception):
    """The job had ended before nova-compute was killed: nothing is shown."""


class Cloud(abc.ABC):
    """A cloud with three compute hosts that have disks of their own.

    :ivar hosts: their names, as Nova has them; a guest begins on the first
    :ivar connection: an ``openstack.connection.Connection`` of an
        administrator
    :ivar flavor: name or ID of the flavor of guests
    :ivar image: name or ID of their image
    :ivar networks: what ``POST /servers`` is told of their networks
    """

    hosts = ()
    connection = None
    flavor = image = None
    networks = 'none'

    @abc.abstractmethod
    def run(self, host, *argv):
        """Run a command on a host as root, and return what it printed.

        :raises subprocess.CalledProcessError: it failed
        """

    @abc.abstractmethod
    def kill_compute(self, host):
        """SIGKILL a host's nova-compute, and wait until it is gone.

        Nothing starts it again before :meth:`start_compute`.
        """

    @abc.abstractmethod
    def start_compute(self, host):
        """Start a host's nova-compute, and wait until it has started."""

    def say(self, text):
        """Tell whoever watches what happens."""
        print(text, flush=True)
