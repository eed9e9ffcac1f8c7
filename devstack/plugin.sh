#!/bin/bash
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

# Installs nova-migration-guard where nova-compute runs, and configures it.
# devstack sources this file with a mode and a phase, once for each of them.

_XTRACE_MIGRATION_GUARD=$(set +o | grep xtrace)
set +o xtrace

# Install the package next to Nova: setup_develop installs, as it does for
# Nova, into the global virtualenv where devstack has one.
function install_migration_guard {
    setup_develop "$MIGRATION_GUARD_DIR"
}

# Write [migration_guard]. start_nova_compute makes nova-cpu.conf anew from
# nova.conf, so what is to be in the one has to be in the other before that.
function configure_migration_guard {
    local option
    iniset "$NOVA_CONF" migration_guard enabled "$MIGRATION_GUARD_ENABLED"
    iniset "$NOVA_CONF" migration_guard unsupported_nova \
        "$MIGRATION_GUARD_UNSUPPORTED_NOVA"
    for option in $MIGRATION_GUARD_OPTIONS; do
        iniset "$NOVA_CONF" migration_guard "${option%%=*}" "${option#*=}"
    done
}

# Remove [migration_guard] from what nova-compute reads, and the package.
# pip_uninstall does not look at GLOBAL_VENV, as pip_install does.
function cleanup_migration_guard {
    local file venv=${PIP_VIRTUAL_ENV:-}
    for file in "$NOVA_CONF" "$NOVA_CPU_CONF"; do
        if [[ -w $file ]]; then
            sed -i -e '/^\[migration_guard\]/,/^\[/{
                /^\[migration_guard\]/d
                /^\[/!d
            }' "$file"
        fi
    done
    if [[ "${GLOBAL_VENV:-False}" == "True" ]]; then
        venv=$DEVSTACK_VENV
    fi
    PIP_VIRTUAL_ENV=$venv pip_uninstall nova-migration-guard
    # setup_develop has left it in the checkout
    sudo rm -rf "$MIGRATION_GUARD_DIR/nova_migration_guard.egg-info"
}

# What is left of migrations whose instances clean.sh has destroyed.
function remove_migration_guard_journal {
    sudo rm -rf "$NOVA_STATE_PATH/migration-guard"
}

# unstack.sh and clean.sh undo what was done, whatever is enabled by then.
case "$1 ${2:-}" in
    "stack install")
        if is_service_enabled n-cpu; then
            echo_summary "Installing nova-migration-guard"
            install_migration_guard
        fi
        ;;
    "stack post-config")
        if is_service_enabled n-cpu; then
            echo_summary "Configuring nova-migration-guard"
            configure_migration_guard
        fi
        ;;
    "unstack ")
        cleanup_migration_guard
        ;;
    "clean ")
        cleanup_migration_guard
        remove_migration_guard_journal
        ;;
esac

$_XTRACE_MIGRATION_GUARD
