// PgSession: one connection to a PostgreSQL server, with values in binary and errors as ours.
//
// A session is never mended: when a statement fails because the connection is gone, the owner
// makes a new one. Numbers travel as bigint and everything else as bytea, so that no encoding or
// collation of the database can refuse or reorder what we write. Execute() costs one round trip.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "state/libpq.h"

namespace muster::state {

// The values for $1, $2, ... in order.
class PgParams {
 public:
  PgParams& Number(std::int64_t number);
  PgParams& Number(std::uint64_t number) { return Number(static_cast<std::int64_t>(number)); }
  PgParams& Bytes(std::string bytes);

  const std::vector<std::string>& values() const { return values_; }

 private:
  std::vector<std::string> values_;
};

// One array value, filled element by element: a column of the rows to insert.
class PgArray {
 public:
  static PgArray OfNumbers() { return PgArray(20); }
  static PgArray OfBytes() { return PgArray(17); }
  PgArray& Add(std::int64_t number);
  PgArray& Add(std::uint64_t number) { return Add(static_cast<std::int64_t>(number)); }
  PgArray& Add(std::string_view bytes);
  std::string Encode() const;

 private:
  explicit PgArray(std::uint32_t type) : type_(type) {}

  std::uint32_t type_;  // the element's oid: 20 bigint, 17 bytea
  std::uint32_t count_ = 0;
  std::string elements_;
};

class PgRows {
 public:
  PgRows(const Libpq& api, PgResult* result) : api_(&api), result_(result, api.clear) {}

  int count() const { return api_->rows(result_.get()); }
  std::int64_t Number(int row, int column) const;
  std::string Bytes(int row, int column) const;

 private:
  const Libpq* api_;
  std::unique_ptr<PgResult, void (*)(PgResult*)> result_;
};

class PgSession {
 public:
  // `api` outlives the session.
  static Result<std::unique_ptr<PgSession>> Connect(const Libpq& api, const std::string& url);

  Result<void> Run(const std::string& script);  // statements without values
  Result<PgRows> Execute(const std::string& sql, const PgParams& params = {});
  Result<void> Prepare(const char* name, const std::string& sql);
  Result<PgRows> ExecutePrepared(const char* name, const PgParams& params);

  // The SQLSTATE of the last failure; empty when the server gave none.
  const std::string& last_state() const { return last_state_; }
  const std::string& where() const { return where_; }  // "PostgreSQL muster on db.example.org"

 private:
  PgSession(const Libpq& api, PgConnection* connection)
      : api_(api), connection_(connection, api.finish) {}
  Result<PgRows> Checked(PgResult* result);

  const Libpq& api_;
  std::unique_ptr<PgConnection, void (*)(PgConnection*)> connection_;
  std::string where_;
  std::string last_state_;
};

}  // namespace muster::state
