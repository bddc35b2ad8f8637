#include "state/postgres_session.h"

#include <array>
#include <utility>

#include "base/check.h"

namespace muster::state {
namespace {

constexpr int kBinary = 1;

void AddBigEndian(std::string& out, std::uint64_t number, int bytes) {
  for (int shift = (bytes - 1) * 8; shift >= 0; shift -= 8) {
    out.push_back(static_cast<char>((number >> shift) & 0xFF));
  }
}

// What follows the first line is advice for programmers.
std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

// Before there is a connection, libpq quotes what it cannot read of the URL: that may be a
// password.
std::string WithoutUrl(const std::string& text) {
  return text.starts_with("connection to server") ? text : text.substr(0, text.find('"'));
}

// The cause decides who can help.
Error Explain(std::string_view state, std::string what) {
  const auto fail = [&](ErrorCode code, const char* hint) {
    return Error{code, std::move(what), hint};
  };
  const auto unavailable = ErrorCode::kUnavailable;
  if (state == "53100") {
    return fail(unavailable, "make room on its disk; work goes on by itself");
  }
  if (state == "25006") {
    return fail(unavailable,
                "make it writable, or name the primary in the URL; work goes on by itself");
  }
  if (state == "23505") {
    return fail(ErrorCode::kConflict,
                "somebody else wrote to it; restart musterd to go on from what is there");
  }
  if (state == "42501") {
    return fail(ErrorCode::kDenied,
                "make this role the owner of schema muster, or let it create that schema");
  }
  if (state == "XX001" || state == "XX002") {
    return fail(ErrorCode::kConflict,
                "the server's files are damaged: restore them from a copy, or look at what "
                "`musterd repair` can keep");
  }
  if (state.empty() || state.starts_with("08") || state.starts_with("57P")) {
    return fail(unavailable,
                "check that the server runs and can be reached; work goes on by itself");
  }
  return fail(unavailable, "the server's log says more; work goes on by itself when that is over");
}

struct Pointers {
  explicit Pointers(const PgParams& params) {
    for (const auto& value : params.values()) {
      values.push_back(value.data());
      lengths.push_back(static_cast<int>(value.size()));
      formats.push_back(kBinary);
    }
  }
  int count() const { return static_cast<int>(values.size()); }

  std::vector<const char*> values;
  std::vector<int> lengths, formats;
};

}  // namespace

PgParams& PgParams::Number(std::int64_t number) {
  std::string value;
  AddBigEndian(value, static_cast<std::uint64_t>(number), 8);
  return Bytes(std::move(value));
}

PgParams& PgParams::Bytes(std::string bytes) {
  values_.push_back(std::move(bytes));
  return *this;
}

PgArray& PgArray::Add(std::int64_t number) {
  AddBigEndian(elements_, 8, 4);
  AddBigEndian(elements_, static_cast<std::uint64_t>(number), 8);
  ++count_;
  return *this;
}

PgArray& PgArray::Add(std::string_view bytes) {
  AddBigEndian(elements_, bytes.size(), 4);
  elements_ += bytes;
  ++count_;
  return *this;
}

// As array_recv reads it: dimensions, has nulls, element type, then size and lower bound.
std::string PgArray::Encode() const {
  std::string out;
  out.reserve(20 + elements_.size());
  AddBigEndian(out, count_ == 0 ? 0 : 1, 4);
  AddBigEndian(out, 0, 4);
  AddBigEndian(out, type_, 4);
  if (count_ == 0) return out;
  AddBigEndian(out, count_, 4);
  AddBigEndian(out, 1, 4);
  return out += elements_;
}

std::int64_t PgRows::Number(int row, int column) const {
  MUSTER_CHECK(api_->length(result_.get(), row, column) == 8, "the column is a bigint");
  const char* bytes = api_->value(result_.get(), row, column);
  std::uint64_t number = 0;
  for (int i = 0; i < 8; ++i) number = number << 8 | static_cast<unsigned char>(bytes[i]);
  return static_cast<std::int64_t>(number);
}

std::string PgRows::Bytes(int row, int column) const {
  return {api_->value(result_.get(), row, column),
          static_cast<std::size_t>(api_->length(result_.get(), row, column))};
}

Result<std::unique_ptr<PgSession>> PgSession::Connect(const Libpq& api, const std::string& url) {
  // A server that is gone must be noticed. What the URL says comes later and overrides.
  constexpr std::array keywords = {"connect_timeout",           "keepalives_idle",
                                   "keepalives_interval",       "keepalives_count",
                                   "tcp_user_timeout",          "dbname",
                                   "fallback_application_name", static_cast<const char*>(nullptr)};
  const std::array values = {"10",    "10",        "5",       "3",
                             "30000", url.c_str(), "musterd", static_cast<const char*>(nullptr)};
  std::unique_ptr<PgSession> session(
      new PgSession(api, api.connect(keywords.data(), values.data(), 1)));
  PgConnection* connection = session->connection_.get();
  if (connection == nullptr || api.status(connection) != kPgConnectionOk) {
    return Fail(ErrorCode::kUnavailable,
                "the store cannot be reached: " +
                    FirstLine(WithoutUrl(connection == nullptr ? "out of memory"
                                                               : api.error_message(connection))),
                "check the URL, that the server runs and that it lets this user in; a password "
                "is best kept in ~/.pgpass");
  }
  // Notices would go to standard error.
  api.set_notice_processor(
      connection, [](void*, const char*) {}, nullptr);
  session->where_ =
      std::string("PostgreSQL ") + api.database(connection) + " on " + api.host(connection);
  return session;
}

Result<PgRows> PgSession::Checked(PgResult* result) {
  PgRows rows(api_, result);
  const int status = result == nullptr ? -1 : api_.result_status(result);
  if (status == kPgCommandOk || status == kPgTuplesOk) return rows;
  const char* state = result == nullptr ? nullptr : api_.result_field(result, kPgFieldSqlState);
  const char* message = result == nullptr ? nullptr : api_.result_field(result, kPgFieldMessage);
  last_state_ = state == nullptr ? "" : state;
  if (message == nullptr) message = api_.error_message(connection_.get());
  return tl::unexpected(Explain(last_state_, "the store " + where_ + ": " + FirstLine(message)));
}

Result<void> PgSession::Run(const std::string& script) {
  auto rows = Checked(api_.exec(connection_.get(), script.c_str()));
  if (!rows) return tl::unexpected(rows.error());
  return {};
}

Result<PgRows> PgSession::Execute(const std::string& sql, const PgParams& params) {
  const Pointers at(params);
  return Checked(api_.exec_params(connection_.get(), sql.c_str(), at.count(), nullptr,
                                  at.values.data(), at.lengths.data(), at.formats.data(), kBinary));
}

Result<void> PgSession::Prepare(const char* name, const std::string& sql) {
  auto rows = Checked(api_.prepare(connection_.get(), name, sql.c_str(), 0, nullptr));
  if (!rows) return tl::unexpected(rows.error());
  return {};
}

Result<PgRows> PgSession::ExecutePrepared(const char* name, const PgParams& params) {
  const Pointers at(params);
  return Checked(api_.exec_prepared(connection_.get(), name, at.count(), at.values.data(),
                                    at.lengths.data(), at.formats.data(), kBinary));
}

}  // namespace muster::state
