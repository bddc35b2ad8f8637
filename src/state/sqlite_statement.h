// Statement: one prepared statement of SQLite, its values bound in order.
//
// Text and blobs are not copied: what is bound must outlive the next Step(). Texts come back as the
// bytes that were bound, whatever they are.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <string>

namespace muster::state {

class Statement {
 public:
  Statement() = default;
  ~Statement() { sqlite3_finalize(handle_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  int Prepare(sqlite3* db, const char* sql) {
    return sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &handle_, nullptr);
  }
  Statement& Reset() {
    sqlite3_reset(handle_);
    next_ = 1;
    return *this;
  }
  Statement& Bind(std::int64_t number) {
    sqlite3_bind_int64(handle_, next_++, number);
    return *this;
  }
  Statement& Bind(std::uint64_t number) { return Bind(static_cast<std::int64_t>(number)); }
  Statement& Text(const std::string& text) {
    sqlite3_bind_text(handle_, next_++, text.data(), static_cast<int>(text.size()), SQLITE_STATIC);
    return *this;
  }
  Statement& Blob(const std::string& bytes) {
    sqlite3_bind_blob64(handle_, next_++, bytes.data(), bytes.size(), SQLITE_STATIC);
    return *this;
  }
  int Step() { return sqlite3_step(handle_); }
  std::int64_t Number(int column) { return sqlite3_column_int64(handle_, column); }
  std::string Bytes(int column) {
    const auto* data = static_cast<const char*>(sqlite3_column_blob(handle_, column));
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(handle_, column));
    return data == nullptr ? std::string() : std::string(data, size);
  }

 private:
  sqlite3_stmt* handle_ = nullptr;
  int next_ = 1;
};

}  // namespace muster::state
