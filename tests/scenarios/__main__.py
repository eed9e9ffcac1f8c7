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

"""Run scenarios on devstack.

Exit codes: 0 all rules held; 1 one was broken; 2 the command line is wrong;
3 a job had ended before nova-compute was killed, so that nothing was shown;
4 the cloud could not do what it was asked for.
"""

import argparse
import sys
import traceback

from tests.scenarios import cloud
from tests.scenarios import devstack
from tests.scenarios import stories

BROKEN, USAGE, TOO_LATE, TROUBLE = 1, 2, 3, 4


def parse(argv):
    parser = argparse.ArgumentParser(
        prog='python -m tests.scenarios', description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('names', metavar='SCENARIO', nargs='+',
                        choices=sorted(stories.STORIES),
                        help=', '.join(sorted(stories.STORIES)))
    parser.add_argument('--host', action='append', required=True,
                        metavar='NAME=ADDRESS', help='a compute host, and '
                        'where ssh reaches it; three of them')
    parser.add_argument('--os-cloud', default='devstack-admin',
                        help='of clouds.yaml (devstack-admin)')
    parser.add_argument('--flavor', default='m1.tiny')
    parser.add_argument('--image', default='cirros')
    parser.add_argument('--network', help='without it guests have no port')
    args = parser.parse_args(argv)
    args.hosts = dict(host.partition('=')[::2] for host in args.host)
    if len(args.hosts) != 3 or not all(args.hosts.values()):
        parser.error('--host NAME=ADDRESS is needed for three hosts')
    return args


def run(name, reach):
    """Run one scenario, say how it ended, and return its exit code.

    :param reach: a callable that returns the cloud
    """
    try:
        stories.tell(name, reach())
    except cloud.Violation as e:
        code, text = BROKEN, 'BROKEN: %s' % e
    except cloud.TooLate as e:
        code, text = TOO_LATE, 'TOO LATE: %s' % e
    except Exception as e:
        traceback.print_exc()
        code, text = TROUBLE, 'TROUBLE: %s' % e
    else:
        code, text = 0, 'HELD'
    print('%s: %s' % (name, text), flush=True)
    return code


def main(argv=None):
    args = parse(sys.argv[1:] if argv is None else argv)
    codes = [run(name, lambda: devstack.Devstack(
        args.hosts, args.os_cloud, args.flavor, args.image, args.network))
        for name in args.names]
    return next((code for code in codes if code), 0)


if __name__ == '__main__':
    sys.exit(main())
