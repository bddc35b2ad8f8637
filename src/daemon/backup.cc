#include "daemon/backup.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

namespace muster::daemon {
namespace {

struct Close {
  void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
};
using Database = std::unique_ptr<sqlite3, Close>;

tl::unexpected<Error> Cannot(const std::string& what, const std::string& why) {
  return Fail(ErrorCode::kUnavailable, what + ": " + why,
              "check who may read and write there and that the disk has room");
}

Result<void> Copy(sqlite3* db, const std::string& target) {
  sqlite3_stmt* raw = nullptr;
  int step = sqlite3_prepare_v2(db, "vacuum into ?", -1, &raw, nullptr);
  if (step == SQLITE_OK) {
    sqlite3_bind_text(raw, 1, target.c_str(), -1, SQLITE_TRANSIENT);
    step = sqlite3_step(raw);
  }
  sqlite3_finalize(raw);
  if (step != SQLITE_DONE) return Cannot("cannot write " + target, sqlite3_errmsg(db));
  return {};
}

// File and name are on disk before the backup is said to be there.
Result<void> Publish(const std::string& part, const std::string& target) {
  const int file = ::open(part.c_str(), O_RDONLY | O_CLOEXEC);
  const bool synced = file >= 0 && ::fsync(file) == 0;
  const int reason = errno;
  if (file >= 0) ::close(file);
  if (!synced) return Cannot("cannot sync " + part, std::strerror(reason));
  // A hard link, unlike a rename, refuses a name that is taken.
  if (::link(part.c_str(), target.c_str()) != 0) {
    return Cannot("cannot name it " + target, std::strerror(errno));
  }
  auto folder = std::filesystem::path(target).parent_path();
  if (folder.empty()) folder = ".";
  const int above = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (above >= 0) {
    ::fsync(above);
    ::close(above);
  }
  return {};
}

}  // namespace

Result<std::int64_t> BackupSqlite(const std::string& journal, const std::string& target) {
  std::error_code error;
  if (std::filesystem::exists(target, error)) {
    return Fail(ErrorCode::kConflict, target + " exists already", "name a file that does not");
  }
  sqlite3* raw = nullptr;
  // Not read-only: a reader of the log takes part in its locks.
  const int opened = sqlite3_open_v2(journal.c_str(), &raw, SQLITE_OPEN_READWRITE, nullptr);
  const Database db(raw);
  if (opened != SQLITE_OK) {
    return Fail(ErrorCode::kNotFound,
                "cannot open the journal " + journal + ": " +
                    (raw == nullptr ? "no memory" : sqlite3_errmsg(raw)),
                "--state names the folder that holds it");
  }
  sqlite3_busy_timeout(db.get(), 10'000);
  const std::string part = target + ".part";
  std::filesystem::remove(part, error);
  const mode_t before = ::umask(077);
  auto done = Copy(db.get(), part);
  ::umask(before);
  if (done) done = Publish(part, target);
  std::filesystem::remove(part, error);
  if (!done) return tl::unexpected(done.error());
  return static_cast<std::int64_t>(std::filesystem::file_size(target, error));
}

}  // namespace muster::daemon
