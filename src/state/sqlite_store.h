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

// Store::Repair(), also for a file that SQLite refuses as a whole: that one is put aside as
// `path`.damaged, and what can be read of it takes its place.
Result<std::int64_t> RepairSqlite(const std::string& path);

}  // namespace muster::state
