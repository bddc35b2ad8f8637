#include "state/postgres_rows.h"

#include <utility>

namespace muster::state {
namespace {

// Puts a query together condition by condition.
struct Question {
  explicit Question(std::string start) { out.sql = std::move(start); }
  template <typename T>
  void Number(const char* condition, T value) {
    out.sql += condition + Next();
    out.params.Number(value);
  }
  void Bytes(const char* condition, std::string value) {
    out.sql += condition + Next();
    out.params.Bytes(std::move(value));
  }
  // In that queue or below it: '0' is the byte that follows '/'.
  void Below(const std::string& queue) {
    Bytes(" and (queue = ", queue);
    Bytes(" or queue > ", queue + "/");
    Bytes(" and queue < ", queue + "0");
    out.sql += ")";
  }
  std::string Next() const { return "$" + std::to_string(out.params.values().size() + 1); }

  PgQuestion out;
};

}  // namespace

void AddRecords(std::span<const Record> records, PgParams& params) {
  auto revision = PgArray::OfNumbers(), at_ms = revision, job = revision, checksum = revision;
  auto body = PgArray::OfBytes();
  for (const auto& record : records) {
    revision.Add(record.revision);
    at_ms.Add(record.at_ms);
    job.Add(record.job);
    checksum.Add(std::uint64_t{Checksum(record)});
    body.Add(record.body);
  }
  for (const auto* column : {&revision, &at_ms, &job, &checksum, &body}) {
    params.Bytes(column->Encode());
  }
}

void AddHistory(std::span<const HistoryRow> rows, PgParams& params) {
  auto ended = PgArray::OfNumbers(), submitted_ms = ended, ended_ms = ended;
  auto name = PgArray::OfBytes(), user = name, queue = name, end = name, kept = name;
  for (const auto& row : rows) {
    ended.Add(row.job);
    name.Add(row.name);
    user.Add(row.user);
    queue.Add(row.queue);
    end.Add(row.end);
    submitted_ms.Add(row.submitted_ms);
    ended_ms.Add(row.ended_ms);
    kept.Add(row.body);
  }
  for (const auto* column : {&ended, &name, &user, &queue, &end, &submitted_ms, &ended_ms, &kept}) {
    params.Bytes(column->Encode());
  }
}

void AddAudits(std::span<const AuditRow> audits, std::uint64_t last, PgParams& params) {
  auto id = PgArray::OfNumbers(), at_ms = id, checksum = id;
  auto who = PgArray::OfBytes(), from = who, what = who, object = who, queue = who, before = who,
       after = who;
  for (AuditRow row : audits) {
    row.id = ++last;
    id.Add(row.id);
    at_ms.Add(row.at_ms);
    who.Add(row.who);
    from.Add(row.from);
    what.Add(row.what);
    object.Add(row.object);
    queue.Add(row.queue);
    before.Add(row.before);
    after.Add(row.after);
    checksum.Add(std::uint64_t{Checksum(row)});
  }
  for (const auto* column :
       {&id, &at_ms, &who, &from, &what, &object, &queue, &before, &after, &checksum}) {
    params.Bytes(column->Encode());
  }
}

PgQuestion QuestionOf(const HistoryQuery& query) {
  Question ask(R"(select job, name, "user", queue, "end", submitted_ms, ended_ms, body)"
               " from muster.history where true");
  if (query.job != 0) ask.Number(" and job = ", query.job);
  if (!query.name.empty()) ask.Bytes(" and name = ", query.name);
  if (!query.user.empty()) ask.Bytes(R"( and "user" = )", query.user);
  if (!query.queue.empty()) ask.Below(query.queue);
  if (query.before != 0) ask.Number(" and job < ", query.before);
  ask.Number(" order by job desc limit ", std::uint64_t{query.limit});
  return std::move(ask.out);
}

PgQuestion QuestionOf(const AuditQuery& query) {
  Question ask(R"(select id, at_ms, who, "from", what, object, queue, before, after, checksum)"
               " from muster.audit where true");
  if (query.since_ms != 0) ask.Number(" and at_ms >= ", query.since_ms);
  if (!query.who.empty()) ask.Bytes(" and who = ", query.who);
  if (!query.object.empty()) ask.Bytes(" and object = ", query.object);
  if (!query.what.empty()) ask.Bytes(" and what = ", query.what);
  if (!query.queue.empty()) ask.Below(query.queue);
  if (query.before != 0) ask.Number(" and id < ", query.before);
  ask.Number(" order by id desc limit ", std::uint64_t{query.limit});
  return std::move(ask.out);
}

std::vector<HistoryRow> HistoryRows(const PgRows& found) {
  std::vector<HistoryRow> rows;
  rows.reserve(static_cast<std::size_t>(found.count()));
  for (int i = 0; i < found.count(); ++i) {
    rows.push_back({static_cast<model::JobNumber>(found.Number(i, 0)), found.Bytes(i, 1),
                    found.Bytes(i, 2), found.Bytes(i, 3), found.Bytes(i, 4), found.Number(i, 5),
                    found.Number(i, 6), found.Bytes(i, 7)});
  }
  return rows;
}

Result<std::vector<AuditRow>> AuditRows(const PgRows& found, const std::string& where) {
  std::vector<AuditRow> rows;
  rows.reserve(static_cast<std::size_t>(found.count()));
  for (int i = 0; i < found.count(); ++i) {
    rows.push_back({static_cast<std::uint64_t>(found.Number(i, 0)), found.Number(i, 1),
                    found.Bytes(i, 2), found.Bytes(i, 3), found.Bytes(i, 4), found.Bytes(i, 5),
                    found.Bytes(i, 6), found.Bytes(i, 7), found.Bytes(i, 8)});
    if (static_cast<std::uint32_t>(found.Number(i, 9)) != Checksum(rows.back())) {
      return tl::unexpected(DamagedAudit(rows.back().id, where));
    }
  }
  return rows;
}

}  // namespace muster::state
