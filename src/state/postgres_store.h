// PostgresStore: the store in a PostgreSQL database, for those who run one with replicas already.
//
// One writer: the session holds an advisory lock, and every daemon that opens the store counts its
// `writer` number up. A lost connection is a lost lock; the next call connects again, takes the
// lock and goes on only when nobody opened the store meanwhile and the last revision is one of
// ours. Append() is one statement, hence one transaction and one round trip. Needs a session of its
// own: a pooler in front of the server must not share it (PgBouncer: pool_mode = session).
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "state/store.h"

namespace muster::state {

// "postgresql://user@host/database", or any other connection string of libpq.
Result<std::unique_ptr<Store>> OpenPostgres(const std::string& conninfo);

}  // namespace muster::state
