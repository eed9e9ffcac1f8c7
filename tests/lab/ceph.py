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

"""Ceph: one monitor, one manager, one disk of memory and file."""

from tests.lab import namespaces
from tests.lab import processes
from tests.lab import settings as lab_settings
from tests.lab import waiting

FSID = '5e1f0000-0000-4000-8000-000000000003'
NAME = lab_settings.CONTROLLER
#: With the first protocol alone, one in 25 clients asks before it knows which
#: cluster it talks to, and ends with EPERM.
MONITOR = '[v2:{0}:3300,v1:{0}:6789]'.format(lab_settings.ADDRESSES[NAME])
POOL = 'volumes'
#: QEMU looks for the configuration here; the package has made the folder.
ETC = '/etc/ceph'
CONF = '''\
[global]
fsid = {fsid}
mon_host = {monitor}
mon_initial_members = {name}
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
run_dir = {folder}/run
admin_socket = {folder}/run/$name.$pid.asok
log_file = {logs}/ceph-$name.log
mon_data = {folder}/mon
osd_data = {folder}/osd
mgr_data = {folder}/mgr
# one copy of everything
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_crush_chooseleaf_type = 0
osd_pool_default_pg_num = 8
osd_pool_default_pg_autoscale_mode = off
mon_allow_pool_size_one = true
# a full disk of the machine is not the lab's concern
mon_data_avail_warn = 1
mon_data_avail_crit = 1
mgr_initial_modules =
bluestore_block_size = {size}
bluestore_cache_size = 67108864
osd_memory_target = 939524096
setuser_match_path =
'''
#: Bytes; the file is sparse.
SIZE = 6 << 30


class Ceph(object):
    """Of one lab.

    :param settings: of the lab
    :param machines: {host name: Namespace}
    """

    def __init__(self, settings, machines):
        self._settings = settings
        self._machines = machines
        self._machine = machines[lab_settings.CONTROLLER]
        self._folder = settings.storage('ceph')
        self.conf = self._folder / 'etc' / 'ceph.conf'
        self.mon = self._process('ceph-mon', NAME)
        self.mgr = self._process('ceph-mgr', NAME)
        self.osd = self._process('ceph-osd', '0')

    def processes(self):
        return [self.mon, self.mgr, self.osd]

    def _process(self, program, name):
        return processes.Process(
            program, [program, '--foreground', '--conf', self.conf,
                      '--id', name],
            self._settings.state / 'pid', self._settings.logs,
            wrap=self._machine.enter,
            env={'PATH': '/usr/sbin:/usr/bin:/sbin:/bin'})

    def up(self):
        """Make a cluster with a pool for volumes."""
        for name in ('etc', 'run', 'mon', 'osd', 'mgr'):
            (self._folder / name).mkdir(parents=True)
        self.conf.write_text(CONF.format(
            fsid=FSID, monitor=MONITOR, name=NAME, folder=self._folder,
            logs=self._settings.logs, size=SIZE))
        for machine in self._machines.values():
            machine.mount(self.conf.parent, ETC)
        monmap = self._folder / 'monmap'
        self._run('monmaptool', '--create', '--addv', NAME, MONITOR, '--fsid',
                  FSID, monmap)
        self._run('ceph-mon', '--mkfs', '--id', NAME, '--monmap', monmap)
        self.mon.start()
        waiting.wait_until(self._answers, 'Ceph answers; see %s' %
                           self.mon.log, 60, 0.5)
        self.mgr.start()
        self._run('ceph', 'osd', 'create')
        self._run('ceph-osd', '--id', '0', '--mkfs')
        self.osd.start()
        self._run('ceph', 'osd', 'crush', 'add', 'osd.0', '1.0',
                  'host=' + NAME, 'root=default')
        self._run('ceph', 'osd', 'pool', 'create', POOL, '8')
        self._run('rbd', 'pool', 'init', POOL)

    def _answers(self):
        try:
            self._run('ceph', '--connect-timeout', '5', 'status')
        except namespaces.CommandFailed:
            return False
        return True

    def _run(self, *argv):
        return self._machine.run(*argv, timeout=120)
