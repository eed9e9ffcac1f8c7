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

"""What each test would otherwise make anew, kept for the whole process.

SQLAlchemy keeps the SQL that it has compiled of a statement with the engine,
and each test has engines of its own. The statements are the same in each, and
so is the dialect: SQLite's has no state that SQL is made of.
"""

from sqlalchemy.dialects.sqlite import pysqlite
from sqlalchemy.engine import base
from sqlalchemy import util


def keep_compiled_statements():
    """Let all engines on SQLite use one cache of compiled statements.

    SQLAlchemy 1.3 and older, of Nova 20 to 22, have no such cache.
    """
    if not hasattr(base.Engine, 'clear_compiled_cache'):
        return
    dialect = pysqlite.SQLiteDialect_pysqlite
    # the cache's keys begin with the dialect
    dialect.__eq__ = lambda self, other: type(self) is type(other)
    dialect.__hash__ = lambda self: hash(type(self))
    kept = util.LRUCache(5000)

    def compiled_cache(engine):
        if isinstance(engine.dialect, dialect):
            return kept
        return vars(engine)['_compiled_cache']

    def keep(engine, cache):
        vars(engine)['_compiled_cache'] = cache
    base.Engine._compiled_cache = property(compiled_cache, keep)
