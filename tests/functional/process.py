# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""One nova-compute process among several that share this Python process."""

import sys

from nova.compute import manager
from nova.compute import resource_tracker
from nova.virt.libvirt import driver

from tests.functional import libvirt_client
from tests.functional import releases


class ComputeProcess(object):
    """A nova-compute: what it is connected to, and whether it lives.

    :param world: the :class:`~tests.functional.hypervisor.World`
    :param hypervisor: the one of its host
    """

    def __init__(self, world, hypervisor):
        self.world = world
        self.host = hypervisor.host
        self.alive = True
        self.client = libvirt_client.LibvirtClient(self, hypervisor)
        self.service = None
        self.executors = releases.executor_factory()
        self._replaced = {}

    @property
    def manager(self):
        return self.service.manager

    def live_or_hang(self):
        """Return if the process lives; never return otherwise.

        The end of the test ends the thread instead, even one of a process
        that lives: Nova's fixtures wait for it.
        """
        if not self.alive:
            self.world.wait_for_end('a killed process waits')
        if self.world.over and not self.world.in_test_thread():
            raise releases.thread_exit()()

    def kill(self):
        """SIGKILL: nothing that this process had begun goes on.

        Its threads stop at their next step out of the process. The RPC
        server stops listening, so that what is sent to it from now on waits
        for the next one.
        """
        self.alive = False
        for name, value in list(vars(self.manager).items()):
            if type(value).__module__.startswith('nova.'):
                self._replaced[name] = value
                setattr(self.manager, name, DeadEnd(self, value))
        for server in releases.rpc_servers(self.service):
            server.stop()
        self.service.tg.stop()

    def shut_down_executors(self):
        """Wait for what its thread pools still run."""
        if self.executors is not None:
            self.executors.reset_all()

    def bury(self):
        """Make what is left of a killed process fit to be cleaned up."""
        for name, value in self._replaced.items():
            setattr(self.manager, name, value)
        self._replaced = {}


class DeadEnd(object):
    """A part of a killed process's manager: who reaches it stays there."""

    def __init__(self, process, original):
        self.__dict__.update(_process=process, _original=original)

    def __getattr__(self, name):
        self._process.live_or_hang()
        return getattr(self._original, name)


def of_object(caller):
    """The ComputeProcess that a manager, tracker or driver is of, or None."""
    if not isinstance(caller, (driver.LibvirtDriver, manager.ComputeManager,
                               resource_tracker.ResourceTracker)):
        return None
    virt_driver = (caller if isinstance(caller, driver.LibvirtDriver) else
                   vars(caller).get('driver'))
    if isinstance(virt_driver, DeadEnd):
        return vars(virt_driver)['_process']
    if getattr(virt_driver, '_host', None) is None:
        return None
    return virt_driver._host.get_connection().process


def of_caller():
    """The ComputeProcess that is running this code, or None.

    In a test all of them share one Python process. Which one it is, the call
    stack tells: it has been through a manager, a tracker or a driver, which
    is the first argument of the function (or of a decorator's ``*args``).
    """
    frame = sys._getframe(1)
    while frame is not None:
        names = frame.f_locals
        args = names.get('args')
        callers = [names.get('self')]
        if type(args) is tuple:
            callers.extend(args[:1])
        for caller in callers:
            found = of_object(caller)
            if found is not None:
                return found
        frame = frame.f_back
    return None


def host_of_caller():
    """The host whose nova-compute is running this code, or None."""
    found = of_caller()
    return found.host if found is not None else None
