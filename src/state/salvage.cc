#include "state/salvage.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <optional>

namespace muster::state {
namespace {

constexpr int kRowsAtOnce = 256;

class Copier {
 public:
  Copier() = default;
  ~Copier() { sqlite3_close_v2(db_); }
  Copier(const Copier&) = delete;
  Copier& operator=(const Copier&) = delete;

  Result<void> Open(const std::string& damaged, const std::string& fresh, const char* schema) {
    // SQLite alone would make a file that everybody reads, and specs hold what is in `env`.
    if (const int own = ::open(fresh.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600); own >= 0) {
      ::close(own);
    }
    sqlite3* made = nullptr;
    const int created = sqlite3_open(fresh.c_str(), &made);
    const bool ready =
        created == SQLITE_OK && sqlite3_exec(made, schema, nullptr, nullptr, nullptr) == SQLITE_OK;
    sqlite3_close_v2(made);
    if (!ready) {
      return Fail(ErrorCode::kUnavailable, "cannot write " + fresh, "make room on its disk");
    }
    if (sqlite3_open_v2(damaged.c_str(), &db_, SQLITE_OPEN_READWRITE, nullptr) != SQLITE_OK) {
      return Fail(ErrorCode::kUnavailable, "cannot open " + damaged);
    }
    sqlite3_db_config(db_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
    Run("pragma writable_schema = on");  // else a file that is too short is not read at all
    char* attach = sqlite3_mprintf("attach %Q as fresh", fresh.c_str());
    const bool attached = Run(attach);
    sqlite3_free(attach);
    if (!attached) return Fail(ErrorCode::kConflict, "nothing of " + damaged + " can be read");
    return {};
  }

  void Forward(const std::string& table, const std::string& key) {
    Copy(table, key, ">", "asc", "max");
  }
  void Backward(const std::string& table, const std::string& key) {
    Copy(table, key, "<", "desc", "min");
  }

 private:
  bool Run(const std::string& sql) {
    return sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK;
  }

  std::optional<std::int64_t> Number(const std::string& sql) {
    sqlite3_stmt* statement = nullptr;
    std::optional<std::int64_t> number;
    if (sqlite3_prepare_v2(db_, sql.c_str(), -1, &statement, nullptr) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW &&
        sqlite3_column_type(statement, 0) == SQLITE_INTEGER) {
      number = sqlite3_column_int64(statement, 0);
    }
    sqlite3_finalize(statement);
    return number;
  }

  // Until a row cannot be read, or there are no more.
  void Copy(const std::string& table, const std::string& key, const std::string& beyond,
            const std::string& order, const std::string& furthest) {
    std::optional<std::int64_t> at;
    for (int rows = kRowsAtOnce; rows > 0;) {
      const auto behind = at ? fmt::format("where {} {} {}", key, beyond, *at) : std::string();
      const auto from =
          fmt::format("from main.{} {} order by {} {} limit {}", table, behind, key, order, rows);
      const auto next =
          Number(fmt::format("select {}({}) from (select {} {})", furthest, key, key, from));
      if (next && Run(fmt::format("insert or ignore into fresh.{} select * {}", table, from))) {
        at = next;
      } else {
        rows /= 2;  // the damage is within these, or there are none: come as near as possible
      }
    }
  }

  sqlite3* db_ = nullptr;
};

}  // namespace

Result<void> Salvage(const std::string& damaged, const std::string& fresh, const char* schema) {
  Copier copier;
  if (auto opened = copier.Open(damaged, fresh, schema); !opened) return opened;
  copier.Forward("journal", "revision");
  copier.Forward("snapshot", "revision");
  copier.Backward("snapshot", "revision");
  copier.Forward("history", "job");
  copier.Backward("history", "job");
  copier.Forward("audit", "id");
  copier.Backward("audit", "id");
  return {};
}

}  // namespace muster::state
