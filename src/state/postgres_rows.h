// PostgresRows: our rows as the values of a statement, and back from what the server answered.
//
// The Add functions put one array for each column, in the order of kAppendSql, so that a batch is
// one statement whatever its size. AuditRows() gives an error for the first row that does not have
// its checksum.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "state/postgres_session.h"
#include "state/store.h"

namespace muster::state {

void AddRecords(std::span<const Record> records, PgParams& params);
void AddHistory(std::span<const HistoryRow> rows, PgParams& params);
// Their ids follow `last`.
void AddAudits(std::span<const AuditRow> audits, std::uint64_t last, PgParams& params);

struct PgQuestion {
  std::string sql;
  PgParams params;
};
PgQuestion QuestionOf(const HistoryQuery& query);
PgQuestion QuestionOf(const AuditQuery& query);

std::vector<HistoryRow> HistoryRows(const PgRows& found);
Result<std::vector<AuditRow>> AuditRows(const PgRows& found, const std::string& where);

}  // namespace muster::state
