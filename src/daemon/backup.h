// BackupSqlite: a consistent copy of the journal while a daemon writes it.
//
// The copy is made within one read transaction, so it is the journal as of one commit, whatever is
// written meanwhile; the writer never waits, only the write-ahead log grows for as long. Copying
// page by page (sqlite3's .backup) lost, because it begins anew at every commit and need not end
// on a busy daemon. The file is the reader's own (0600), synced, and appears under its name whole
// or not at all. Costs one pass over the file.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace muster::daemon {

// The size of the copy in bytes. `target` must not exist.
Result<std::int64_t> BackupSqlite(const std::string& journal, const std::string& target);

}  // namespace muster::daemon
