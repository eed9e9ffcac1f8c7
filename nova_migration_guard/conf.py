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

"""The options of ``[migration_guard]``."""

import difflib
import glob
import os
import typing

from oslo_config import cfg
from oslo_log import log as logging

from nova_migration_guard import plugin

LOG = logging.getLogger(__name__)

GROUP = cfg.OptGroup(
    plugin.GROUP,
    title='Migration guard',
    help="""
What nova-migration-guard does on this compute host.

These options are read by nova-compute, so they belong in the file or the
directory that nova-compute reads.
""")

OPTS = [
    plugin.ENABLED,
    cfg.StrOpt(
        'unsupported_nova',
        default='refuse',
        choices=[
            ('refuse', 'nova-compute does not start; the log names what does '
                       'not fit.'),
            ('warn', 'nova-compute starts without the guard; the log names '
                     'what does not fit.'),
        ],
        help="""
What to do when the guard is enabled on a Nova that it does not know.

A Nova is judged by its release and by the signature of every function that
the guard patches or calls.
"""),
    cfg.StrOpt(
        'mode',
        default='enforce',
        choices=[
            ('enforce', 'Carry out every verdict.'),
            ('report', 'Log every verdict and every kept device; change '
                       'nothing.'),
        ],
        help='Whether the guard acts, or only says what it would do.'),
    cfg.StrOpt(
        'on_restart',
        default='abort',
        choices=[
            ('abort', 'Abort it and roll it back.'),
            ('adopt', 'See it through, as the nova-compute would have done '
                      'that began it.'),
        ],
        help="""
What nova-compute does, when it starts, about a live migration that still
copies to another host. One that is not in the journal is aborted in any case.
One in post-copy is seen through in any case: both hosts have a part of its
guest.
"""),
    cfg.BoolOpt(
        'startup_guard',
        default=True,
        help="""
Look after live migrations that an earlier nova-compute left unfinished.
"""),
    cfg.BoolOpt(
        'block_jobs',
        default=True,
        help="""
Look after live snapshots, volume swaps and assisted volume snapshots as well.
Has no effect while ``startup_guard`` is false.
"""),
    cfg.BoolOpt(
        'resource_guard',
        default=True,
        help="""
Keep the resource audit from missing an instance that arrives during it, and
the mediated devices that are claimed for one over a restart of nova-compute.
"""),
    cfg.StrOpt(
        'journal_dir',
        default='$state_path/migration-guard',
        help="""
The folder in which the guard writes down what is needed to finish or to undo
an interrupted live migration, and what is claimed for arriving guests, in a
folder of this host's name. The files can hold credentials of volumes, and are
for nova-compute's user only. The folder must outlive a restart of the host.
"""),
    cfg.BoolOpt(
        'journal_required',
        default=True,
        help="""
Refuse a live migration that cannot be written down, because the disk is full
or read-only, for example. Otherwise it goes on, with a warning in the log; if
it is interrupted, it is settled as far as Nova's other records allow.
"""),
    cfg.BoolOpt(
        'peer_libvirt',
        default=False,
        help="""
Ask the libvirt of a migration's destination as well, when its nova-compute
does not say whether the guest runs there. Over the URI that live migration
uses, so this host's user needs the right to read there.
"""),
    cfg.StrOpt(
        'foreign_block_jobs',
        default='report',
        choices=[
            ('report', 'Log them when nova-compute starts, and leave them '
                       'alone.'),
            ('abort', 'Abort them when nova-compute starts, without pivot.'),
        ],
        help="""
What to do about block jobs of instances that another tool than Nova started,
a backup for example. The instance is not held for them.
"""),
    cfg.StrOpt(
        'metrics_file',
        help="""
The file into which numbers are written for Prometheus, in the folder of
node-exporter's textfile collector, with a name that ends with ``.prom``.
nova-compute's user needs the right to write there. Nothing is written when it
is not set.
"""),
    cfg.IntOpt(
        'abort_timeout',
        default=30,
        min=1,
        help="""
Seconds to wait, for one instance, until libvirt says that the job which the
guard aborted is gone. An instance whose job is not gone by then is held.
"""),
    cfg.IntOpt(
        'startup_timeout',
        default=60,
        min=1,
        help="""
Seconds that the guard may add to the start of nova-compute, for all instances
together. Instances that are not settled by then are held and settled in the
background.
"""),
    cfg.IntOpt(
        'call_timeout',
        default=10,
        min=1,
        help="""
Seconds to wait for what libvirt says about one domain. A call to a domain
whose QEMU does not answer can block without limit.
"""),
    cfg.IntOpt(
        'libvirt_workers',
        default=8,
        min=1,
        max=64,
        help="""
How many domains the guard asks libvirt about at the same time. A call that
hangs keeps its worker until it returns. With eventlet each takes one of the
process's native threads (EVENTLET_THREADPOOL_SIZE, 20 by default), so leave
some for Nova.
"""),
    cfg.IntOpt(
        'settle_interval',
        default=30,
        min=1,
        help="""
Seconds until the settler first tries again to settle an instance that is
held. The time doubles with each attempt. Up to half of it is left out by
chance, so that hosts that were restarted together do not try together.
"""),
    cfg.IntOpt(
        'settle_interval_max',
        default=600,
        min=1,
        help='The most seconds between two attempts to settle an instance.'),
]


def register_opts(conf):
    """Register the group and its options.

    :param conf: an ``oslo_config.cfg.ConfigOpts``
    """
    conf.register_group(GROUP)
    conf.register_opts(OPTS, group=GROUP)


def list_opts():
    """The options for oslo.config's generators (``oslo.config.opts``)."""
    return [(GROUP, OPTS)]


def _files(conf):
    """The files that a configuration was read from."""
    folders = conf.config_dir or []
    if isinstance(folders, str):
        folders = [folders]
    found = list(conf.config_file or [])
    for folder in folders:
        found.extend(sorted(glob.glob(os.path.join(folder, '*.conf'))))
    return found


def unknown_options(conf):
    """Find what is set in the group and is no option of the guard.

    oslo.config reads past it, and an operator would believe that it works.

    :param conf: an ``oslo_config.cfg.ConfigOpts``
    :returns: a list of (file, name, the option that is probably meant, or
        None)
    """
    known = {opt.dest for opt in OPTS}
    found = []
    for path in _files(conf):
        sections: typing.Dict[str, dict] = {}
        try:
            cfg.ConfigParser(path, sections).parse()
        except (OSError, ValueError, cfg.Error):
            # it has been read, so it was changed since
            continue
        for name in sections.get(GROUP.name, {}):
            if name.replace('-', '_') not in known:
                close = difflib.get_close_matches(name, known, 1)
                found.append((path, name, close[0] if close else None))
    return found


def warn_of_unknown(conf):
    """Log what :func:`unknown_options` finds. Raises nothing."""
    try:
        unknown = unknown_options(conf)
    except Exception as e:
        LOG.debug('Unknown options are not looked for: %s', e)
        return
    for path, name, meant in unknown:
        LOG.warning('[%(group)s] %(name)s in %(path)s is no option of '
                    'nova-migration-guard, and has no effect.%(meant)s',
                    {'group': GROUP.name, 'name': name, 'path': path,
                     'meant': ' Is %s meant?' % meant if meant else ''})


def replace_bad_values(conf):
    """Let no misspelt option keep nova-compute from starting.

    Each option whose value cannot be read is logged as an error that names
    it, and has its default for the life of the process. ``enabled`` is not
    among them: see :func:`nova_migration_guard.plugin.is_enabled`.

    :param conf: an ``oslo_config.cfg.ConfigOpts`` with the options registered
    :returns: the names of the options that were replaced
    """
    replaced = []
    for opt in OPTS:
        if opt is plugin.ENABLED:
            continue
        try:
            getattr(conf[GROUP.name], opt.dest)
        except (cfg.Error, ValueError) as e:
            LOG.error('[%(group)s] %(option)s: %(error)s. The default, '
                      '%(default)s, is used instead.',
                      {'group': GROUP.name, 'option': opt.name, 'error': e,
                       'default': opt.default})
            conf.set_override(opt.dest, opt.default, group=GROUP.name)
            replaced.append(opt.name)
    return replaced
