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

"""Every interleaving of one resource audit with one move.

A *step* of a move is what an audit of a host can tell by: a write to Nova's
database that changes the *picture* of the instance which that host's audit
can read (:mod:`.picture`), or the end of a claim or release, which changes
what the host's tracker holds. An audit reads the database several times, and
before each read the move may take any number of steps. What stands between
them is the lock ``compute_resources`` of the host: the audit holds it from its
first read to its end, so a step that needs it comes before or after the whole
audit. Within these bounds all placements of the reads among the steps are
enumerated (:mod:`.exploring`).

Two placements in which every read returns the same are the same interleaving,
because an audit computes from nothing but its reads and what its tracker
holds. So a read is tried at the first step of each run of steps that it cannot
tell apart, which leaves the reads that follow it all the freedom there is.
For the same reason writes that change no picture are no steps: fields that no
audit looks at, other tables, other instances. Rows of devices are written
under the lock.

It would take hours to run each interleaving from a fresh start, so the work is
shared:

1. The real move runs once, undisturbed (:mod:`.recording`). At every step the
   database and the tracker's memory are copied.
2. For each interleaving the real audit runs on those copies: on the tracker's
   memory as it was at the step at which the audit takes the lock, and with
   each read answered from the database as it was at the read's step. That
   gives what the tracker holds when the audit ends, and whether it has set
   free what it must not.
3. Interleavings that end at the same step with the same outcome go on in the
   same way, for the move sees of an audit nothing but that outcome. One of
   each is run for real (:mod:`.replaying`): a real move and a real audit in a
   thread of its own, held at each step and each read until it is their turn.
   The outcome must be the one that the copies gave, and after the move and a
   quiet audit nothing may be missing and nothing be left over.

What is left out:

* The audit's instances in Placement: it deletes allocations of deleted
  instances only, and asks for each once more before it does.
* The first audit of a process, which differs in one read. Nothing else of
  that process has begun, so :mod:`tests.functional.test_moves_race_audit` has
  its case.
* Step 3 for moves between two cells: Nova's fixtures let one thread at a time
  be in another cell than the others, so a move that is held there would hold
  the audit, too.

==============  ============================================================
``database``    reads and writes as points at which one can be held, copies
``picture``     what an audit can tell one state of the database from another
``tracker``     copies of a tracker's memory, and what it holds
``stepping``    steps as they happen
``recording``   step 1
``exploring``   step 2
``judging``     what must not be free
``replaying``   step 3
``moves``       the moves
``two_cells``   each host in a cell, and a database, of its own
``results``     the table
==============  ============================================================
"""
