// SqliteStore: the default store, one file in WAL mode with full synchronous.
//
// A commit costs one fsync of the log; readers never wait for the writer. A torn log tail is cut
// off by SQLite itself at the last whole transaction; anything else that is wrong is found by the
// records' checksums. A full disk or a read-only file makes Append fail and changes nothing. The
// file is locked against a second daemon for as long as the store is open.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "state/store.h"

namespace muster::state {

Result<std::unique_ptr<Store>> OpenSqlite(const std::string& path);

}  // namespace muster::state
