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


"""What tests/lab/up and tests/lab/down do."""

import os
import sys

from tests.lab import deployment
from tests.lab import settings as lab_settings
from tests.lab import virtualenvs

HINT = '''
The hosts are namespaces. A shell in one of them, with its own virsh:
  nsenter --target %(pid)d --mount --uts --net
Configuration: %(etc)s
Logs:          %(logs)s
Tests:         NOVA_LAB_RELEASE=%(release)s NOVA_LAB_FORM=%(form)s \\
  NOVA_LAB_ROOT=%(root)s \\
  %(python)s -m stestr --test-path tests/lab run --serial
'''


def add_root(parser):
    parser.add_argument(
        '--root', help='folder for virtualenvs, state and logs (%s)' %
        lab_settings.ROOT,
        default=os.environ.get('NOVA_LAB_ROOT', lab_settings.ROOT))


def add_arguments(parser):
    environ = os.environ
    add_root(parser)
    parser.add_argument(
        '--release', help='of Nova, one of constraints/releases.cfg (%s)' %
        lab_settings.RELEASE,
        default=environ.get('NOVA_LAB_RELEASE', lab_settings.RELEASE))
    parser.add_argument(
        '--full', dest='form', action='store_const', const=lab_settings.FULL,
        help='with Keystone, Neutron and Cinder, so that servers have ports '
        'and volumes',
        default=environ.get('NOVA_LAB_FORM', lab_settings.LIGHT))


def _compute_options(assignments):
    options = {}
    for assignment in assignments:
        name, equals, value = assignment.partition('=')
        section, dot, option = name.partition('.')
        if not equals or not dot:
            raise deployment.CannotRun(
                '--set %s is not SECTION.OPTION=VALUE' % assignment)
        options.setdefault(section, {})[option] = value
    return options


def up(args):
    """Bring a lab up, and say how to use it.

    :param args: release, root, form, stock, virt_type, bandwidth, set
    :returns: exit code
    """
    try:
        parts = deployment.Deployment(lab_settings.Settings(
            release=args.release, root=args.root, guard=not args.stock,
            virt_type=args.virt_type, bandwidth=args.bandwidth,
            form=args.form,
            compute_options=_compute_options(args.set)))
        parts.lock()
        parts.up()
    except (deployment.CannotRun, virtualenvs.Failure) as e:
        print('lab: %s' % e, file=sys.stderr)
        return 1
    print(HINT % {
        'pid': parts.machines['host-a'].pid, 'etc': parts.settings.etc,
        'logs': os.path.realpath(str(parts.settings.logs)),
        'python': parts.venvs.control / 'bin' / 'python',
        'release': args.release, 'form': args.form,
        'root': parts.settings.root})
    return 0


def down(args):
    """Take labs of a root down.

    :param args: root, names
    :returns: exit code
    """
    code = 0
    for settings in lab_settings.found_in(args.root):
        if args.names and settings.name not in args.names:
            continue
        parts = deployment.Deployment(settings)
        try:
            parts.lock()
        except deployment.CannotRun as e:
            print('lab %s: %s' % (settings.name, e), file=sys.stderr)
            code = 1
        else:
            parts.down()
    return code
