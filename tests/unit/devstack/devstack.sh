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

# Stands in for devstack: its functions that the plugin calls, each of which
# writes its name and arguments to $CALLS, and the order in which stack.sh,
# unstack.sh and clean.sh call a plugin.
#
# Arguments: stack, unstack or clean, and the folder of the plugin.
# shellcheck disable=SC1091

set -o errexit -o nounset

NOVA_CONF=$ETC/nova.conf
NOVA_CPU_CONF=$ETC/nova-cpu.conf
export NOVA_STATE_PATH=$DATA/nova

function called {
    echo "$*" >> "$CALLS"
}

function is_service_enabled {
    [[ ,$ENABLED_SERVICES, == *,$1,* ]]
}

function define_plugin {
    called define_plugin "$@"
}

function echo_summary {
    echo "$@"
}

# As devstack's: to the environment that pip_install takes.
function setup_develop {
    local venv=system
    if [[ $GLOBAL_VENV == True ]]; then
        venv=$DEVSTACK_VENV
    fi
    called setup_develop "$1" into "$venv"
}

function pip_uninstall {
    called pip_uninstall "$1" from "${PIP_VIRTUAL_ENV:-system}"
}

function iniset {
    called iniset "$(basename "$1")" "$2" "$3" "$4"
    python3 - "$@" <<PYTHON
import configparser
import sys

path, section, option, value = sys.argv[1:]
parser = configparser.ConfigParser(interpolation=None)
parser.read(path)
if section != 'DEFAULT' and not parser.has_section(section):
    parser.add_section(section)
parser.set(section, option, value)
with open(path, 'w') as output:
    parser.write(output)
PYTHON
}

function run_process {
    called run_process "$@"
}

function stop_process {
    called stop_process "$@"
}

function sudo {
    "$@"
}

function phase {
    source "$PLUGIN/plugin.sh" "$@"
}

# As lib/nova: made anew each time.
function start_nova_compute {
    if is_service_enabled n-cpu; then
        cp "$NOVA_CONF" "$NOVA_CPU_CONF"
        run_process n-cpu nova-compute
    fi
}

MODE=$1
PLUGIN=$2
source "$PLUGIN/override-defaults"
source "$PLUGIN/settings"
case $MODE in
    stack)
        phase stack pre-install
        phase stack install
        phase stack post-config
        start_nova_compute
        phase stack extra
        phase stack test-config
        ;;
    *)
        phase "$MODE"
        ;;
esac
