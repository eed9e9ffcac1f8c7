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

"""From nova.conf to a patched nova-compute, each in a process of its own.

What is patched stays patched for the life of a process, so every case starts
a new interpreter. It does what nova-compute does up to the point at which it
makes its service.
"""

import importlib
import json
import os
import subprocess
import sys

import fixtures
from oslotest import base

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))

# The start of nova.cmd.compute.main(), a probe, and what it has found.
PROGRAM = """
import json
import sys
sys.path.insert(0, %(root)r)
import nova.cmd.compute
from nova import config
from nova import objects
import os_vif
from oslo_log import log as logging

found = {}
config.parse_args(['nova-compute', '--config-file', %(conf)r])
logging.setup(config.CONF, 'nova')
objects.register_all()

def start():
    os_vif.initialize(reset=True)

def seam(name):
    module, path = name.split(':')
    __import__(module)
    owner, attribute = path.split('.')
    return vars(getattr(sys.modules[module], owner))[attribute]

%(probe)s
with open(%(found)r, 'w') as f:
    json.dump(found, f)
"""

INIT_HOST = 'nova.compute.manager:ComputeManager.init_host'

# Every attribute that the patch set replaces, before and after the start.
PATCHED_ATTRIBUTES = """
NAMES = %r
before = {name: seam(name) for name in NAMES}
start()
found['changed'] = sorted(
    name for name in NAMES if seam(name) is not before[name])
found['imported'] = sorted(
    name for name in sys.modules if name.startswith('nova_migration_guard'))
"""

CHANGED_SIGNATURE = """
from nova.compute import manager
manager.ComputeManager._init_instance = lambda self, ctxt, instance, why: None
start()
found['init_host'] = repr(seam(%r))
""" % INIT_HOST


# Every seam's fault when it looks different, and when it is gone.
EACH_SEAM = """
from nova_migration_guard import compat
from nova_migration_guard import seams

def other(other):
    pass

class Gone(object):
    def __get__(self, instance, owner):
        raise AttributeError()

def fault():
    try:
        seams.check(config.CONF)
    except compat.UnsupportedNova as e:
        return str(e)

for each in compat.SEAMS:
    seams.find(each)
    owner, name = each.name.split('.')
    owner = getattr(sys.modules[each.module], owner)
    home = next(cls for cls in owner.__mro__ if name in vars(cls))
    original = vars(home)[name]
    setattr(home, name, staticmethod(other))
    changed = fault()
    setattr(home, name, Gone())
    found['%s:%s' % (each.module, each.name)] = changed, fault()
    setattr(home, name, original)
"""

# Another patcher comes first; then the guard; then Nova calls the function.
ON_TOP = """
import functools
import os
import wrapt
from osprofiler import profiler
from nova.compute import manager

called = []

def original(self):
    called.append('Nova')

def note(wrapped, instance, args, kwargs):
    called.append('theirs')
    return wrapped(*args, **kwargs)

def traced(wrapped, name, **kwargs):
    profiler.init('key')
    profiler.get().start = lambda *args, **kwargs: called.append('theirs')
    profiler.get().stop = lambda *args, **kwargs: None
    return profiler.trace(name)(wrapped)

manager.ComputeManager.cleanup_host = %s
start()
manager.ComputeManager.cleanup_host(object.__new__(manager.ComputeManager))
found['called'] = called
found['seam'] = repr(seam('nova.compute.manager:ComputeManager.cleanup_host'))
"""
WRAPPERS = ('wrapt.FunctionWrapper(original, note)',
            "traced(original, 'cleanup')")


class ActivationTestCase(base.BaseTestCase):

    def setUp(self):
        super(ActivationTestCase, self).setUp()
        self.folder = self.useFixture(fixtures.TempDir()).path

    def run_nova(self, probe, options='enabled = true',
                 driver='libvirt.LibvirtDriver', debug=False):
        """Start nova-compute so far as it loads its plugins.

        :param probe: the code to run instead of the rest of it
        :param options: the lines of ``[migration_guard]``
        :returns: (exit code, what the probe found, the log)
        """
        conf = os.path.join(self.folder, 'nova.conf')
        found = os.path.join(self.folder, 'found')
        with open(conf, 'w') as f:
            f.write('[DEFAULT]\ncompute_driver = %s\ndebug = %s\n'
                    'state_path = %s\n[migration_guard]\n%s\n' % (
                        driver, debug, self.folder, options))
        process = subprocess.Popen(
            [sys.executable, '-W', 'ignore', '-c', PROGRAM % {
                'root': ROOT, 'conf': conf, 'found': found, 'probe': probe}],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            universal_newlines=True)
        try:
            log, _ = process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        if process.returncode:
            return process.returncode, None, log
        with open(found) as f:
            return process.returncode, json.load(f), log

    def patched_names(self):
        from nova_migration_guard import patches
        modules = [importlib.import_module('%s.%s' % (patches.__name__, name))
                   for name in patches._MODULES]
        return sorted({'%s:%s' % (module.MODULE, name) for module in modules
                       for name in module.PATCHES})

    def test_disabled_is_inert(self):
        probe = PATCHED_ATTRIBUTES % self.patched_names()
        for options in ('', 'enabled = false'):
            code, found, log = self.run_nova(probe, options)
            self.assertEqual(0, code, log)
            self.assertEqual([], found['changed'])
            self.assertEqual(['nova_migration_guard',
                              'nova_migration_guard.plugin'],
                             found['imported'])
            self.assertNotIn('nova_migration_guard', log)

    def test_disabled_logs_at_debug(self):
        code, found, log = self.run_nova('start()', '', debug=True)
        self.assertEqual(0, code, log)
        lines = [line for line in log.splitlines()
                 if ' nova_migration_guard' in line]
        self.assertEqual(1, len(lines), lines)
        self.assertIn(' DEBUG ', lines[0])

    def test_enabled_patches_every_seam_once(self):
        names = self.patched_names()
        code, found, log = self.run_nova(PATCHED_ATTRIBUTES % names + """
after = {name: seam(name) for name in NAMES}
start()
from nova_migration_guard import plugin
found['again'] = plugin.activate()
found['twice'] = [name for name in NAMES if seam(name) is not after[name]]
found['eventlet'] = 'eventlet' in sys.modules
""")
        self.assertEqual(0, code, log)
        self.assertEqual(sorted(names), found['changed'])
        self.assertTrue(found['again'])
        self.assertEqual([], found['twice'])
        lines = [line for line in log.splitlines()
                 if 'INFO nova_migration_guard' in line]
        self.assertEqual(1, len(lines), log)
        from nova import version
        for part in ('guards nova %s' % version.version_string(),
                     'mode: enforce', 'ComputeManager.init_host'):
            self.assertIn(part, lines[0])

    def test_it_plugs_no_vifs(self):
        code, found, log = self.run_nova("""
start()
from os_vif.objects import vif
extension = os_vif._EXT_MANAGER['migration_guard'].obj
found['vif_info'] = len(extension.describe().vif_info)
found['host_info'] = len(os_vif.host_info().plugin_info)
try:
    extension.plug(vif.VIFOpenVSwitch(id='%s'), None)
except Exception as e:
    found['plug'] = str(e)
""" % ('6d8a2b0e-4c1c-4a53-9f5b-0c1d3a1f7e11'))
        self.assertEqual(0, code, log)
        self.assertEqual(0, found['vif_info'])
        self.assertGreater(found['host_info'], 1)
        self.assertIn('plugs no VIFs', found['plug'])

    def test_changed_signature_is_refused(self):
        code, found, log = self.run_nova(CHANGED_SIGNATURE)
        self.assertNotEqual(0, code)
        self.assertIn('ERROR nova_migration_guard.plugin', log)
        self.assertIn('nova.compute.manager:ComputeManager._init_instance '
                      'has the signature (self, ctxt, instance, why), known: '
                      '(self, context, instance)', log)

    def test_changed_signature_with_warn(self):
        code, found, log = self.run_nova(
            CHANGED_SIGNATURE, 'enabled = true\nunsupported_nova = warn')
        self.assertEqual(0, code, log)
        self.assertIn('NOT in force', log)
        self.assertIn('ComputeManager._init_instance has the signature', log)
        self.assertNotIn('FunctionWrapper', found['init_host'])

    def test_seam_that_is_gone(self):
        code, found, log = self.run_nova("""
from nova.compute import manager
del manager.ComputeManager.init_virt_events
start()
""")
        self.assertNotEqual(0, code)
        self.assertIn('nova.compute.manager:ComputeManager.init_virt_events '
                      'is not there', log)

    def test_every_patched_function_is_a_seam(self):
        from nova_migration_guard import compat
        self.assertEqual(set(), set(self.patched_names()) - {
            '%s:%s' % (seam.module, seam.name) for seam in compat.SEAMS})

    def test_every_seam_is_checked(self):
        """Each in turn has another signature, and then is gone."""
        code, found, log = self.run_nova(EACH_SEAM)
        self.assertEqual(0, code, log)
        from nova_migration_guard import compat
        self.assertEqual(len(compat.SEAMS), len(found))
        for name, (changed, gone) in found.items():
            self.assertEqual(1, changed.count(';') + 1, changed)
            self.assertIn(name + ' has the signature (other), known: (',
                          changed)
            self.assertIn(name + ' is not there', gone)

    def test_seams_have_the_form_of_their_release(self):
        code, found, log = self.run_nova('start()')
        self.assertEqual(0, code, log)
        for text in ('in the form of another release', 'was not tested'):
            self.assertNotIn(text, log)

    def test_backport_is_judged_by_its_seams(self):
        code, found, log = self.run_nova("""
from nova import version
from nova.compute import manager
version.version_string = lambda: '20.0.0'
manager.ComputeManager._live_migration_cleanup_flags = (
    lambda self, migrate_data, migr_ctxt=None: None)
start()
found['init_host'] = repr(seam(%r))
""" % INIT_HOST)
        self.assertEqual(0, code, log)
        self.assertIn('FunctionWrapper', found['init_host'])
        self.assertIn(
            'nova 20.0.0 has seams in the form of another release, as a '
            'backport makes them: ', log)
        self.assertIn('ComputeManager._live_migration_cleanup_flags (self, '
                      'migrate_data, migr_ctxt)', log)

    def test_release_that_was_not_tested(self):
        code, found, log = self.run_nova("""
from nova import version
version.version_string = lambda: '31.99.0'
start()
found['init_host'] = repr(seam(%r))
""" % INIT_HOST)
        self.assertEqual(0, code, log)
        self.assertIn('FunctionWrapper', found['init_host'])
        self.assertIn('INFO nova_migration_guard.seams', log)
        self.assertIn('nova 31.99.0 was not tested; 31.3.1 of its series was',
                      log)

    def test_on_top_of_another_patcher(self):
        """OpenTelemetry wraps with wrapt, osprofiler with a decorator."""
        for wrapper in WRAPPERS:
            code, found, log = self.run_nova(ON_TOP % wrapper)
            self.assertEqual(0, code, log)
            self.assertEqual(['theirs', 'Nova'], found['called'], wrapper)
            self.assertIn('FunctionWrapper', found['seam'])

    def test_on_top_of_a_wrapper_that_hides_the_signature(self):
        code, found, log = self.run_nova(
            ON_TOP % 'lambda *args, **kwargs: original(*args, **kwargs)')
        self.assertNotEqual(0, code)
        self.assertIn('ComputeManager.cleanup_host has the signature (args, '
                      'kwargs), known: (self)', log)

    def test_unknown_release(self):
        for release in ('19.3.2', '35.0.0', 'master'):
            code, found, log = self.run_nova("""
from nova import version
version.version_string = lambda: %r
start()
""" % release)
            self.assertNotEqual(0, code)
            self.assertIn(release, log)

    def test_another_driver(self):
        code, found, log = self.run_nova('start()', driver='fake.FakeDriver')
        self.assertNotEqual(0, code)
        self.assertIn('compute_driver is fake.FakeDriver', log)

    def test_bad_options_do_not_stop_nova_compute(self):
        bad = {'abort_timeout': '-1', 'startup_timeout': 'soon',
               'settle_interval': '0', 'call_timeout': '-5',
               'libvirt_workers': '1000', 'mode': 'watch',
               'unsupported_nova': 'hope', 'startup_guard': 'perhaps'}
        code, found, log = self.run_nova("""
start()
options = config.CONF.migration_guard
found.update({name: getattr(options, name) for name in %r})
""" % list(bad), 'enabled = true\n' + '\n'.join(
            '%s = %s' % item for item in bad.items()))
        self.assertEqual(0, code, log)
        self.assertEqual(
            {'abort_timeout': 30, 'startup_timeout': 60,
             'settle_interval': 30, 'call_timeout': 10,
             'libvirt_workers': 8, 'mode': 'enforce',
             'unsupported_nova': 'refuse', 'startup_guard': True}, found)
        for name in bad:
            self.assertIn('[migration_guard] %s: ' % name, log)

    def test_bad_switch(self):
        """Whether the guard was asked for cannot be guessed."""
        code, found, log = self.run_nova('start()', 'enabled = perhaps')
        self.assertNotEqual(0, code)
        self.assertIn('[migration_guard] enabled', log)
        self.assertIn('perhaps', log)
