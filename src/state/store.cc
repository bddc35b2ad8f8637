#include "state/store.h"

#include <array>

#include "state/state.h"

namespace muster::state {
namespace {

constexpr std::uint32_t kPolynomial = 0x82F63B78;  // CRC-32C, reflected

constexpr std::array<std::uint32_t, 256> MakeTable() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    table[i] = crc;
  }
  return table;
}
constexpr auto kTable = MakeTable();

std::uint32_t Crc(std::uint32_t crc, std::string_view bytes) {
  for (const char c : bytes) {
    crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(c)) & 0xFF];
  }
  return crc;
}

std::uint32_t Crc(std::uint32_t crc, std::uint64_t number) {
  for (int i = 0; i < 8; ++i, number >>= 8) {
    crc = (crc >> 8) ^ kTable[(crc ^ static_cast<std::uint32_t>(number)) & 0xFF];
  }
  return crc;
}

}  // namespace

std::uint32_t Checksum(const Record& record) {
  std::uint32_t crc = 0xFFFFFFFF;
  crc = Crc(crc, record.revision);
  crc = Crc(crc, static_cast<std::uint64_t>(record.at_ms));
  crc = Crc(crc, record.job);
  return ~Crc(crc, record.body);
}

std::uint32_t Checksum(const AuditRow& row) {
  std::uint32_t crc = 0xFFFFFFFF;
  crc = Crc(crc, row.id);
  crc = Crc(crc, static_cast<std::uint64_t>(row.at_ms));
  for (const auto* text :
       {&row.who, &row.from, &row.what, &row.object, &row.queue, &row.before, &row.after}) {
    // With its size, so that nothing can slip from one field into the next.
    crc = Crc(Crc(crc, std::uint64_t{text->size()}), *text);
  }
  return ~crc;
}

Record AsRecord(const Snapshot& snapshot) { return {snapshot.revision, 0, 0, snapshot.body}; }

Error Damaged(std::uint64_t revision, const std::string& where) {
  return {ErrorCode::kConflict,
          "the journal in " + where + " is damaged at revision " + std::to_string(revision) +
              "; everything before it is intact",
          "`musterd repair` keeps the intact part and puts the rest aside; a copy of the store "
          "made earlier is the other way"};
}

Result<State> LoadState(Store& store) {
  State state;
  auto snapshot = store.LoadSnapshot();
  if (!snapshot) return tl::unexpected(snapshot.error());
  if (!snapshot->body.empty()) {
    auto decoded = State::Decode(snapshot->body);
    if (!decoded) return tl::unexpected(decoded.error());
    state = std::move(*decoded);
  }
  RecordQuery query;
  query.after = state.revision();
  query.limit = SIZE_MAX >> 1;
  const std::string where = store.Describe();
  auto read = store.Read(query, [&](const Record& record) -> Result<void> {
    if (record.revision != state.revision() + 1) {
      return tl::unexpected(Damaged(state.revision() + 1, where));
    }
    auto body = model::DecodeEvent(record.body);
    if (!body) return tl::unexpected(body.error());
    state.Fold({record.at_ms, std::move(*body)});
    return {};
  });
  if (!read) return tl::unexpected(read.error());
  return state;
}

Error DamagedAudit(std::uint64_t id, const std::string& where) {
  const std::string number = std::to_string(id);
  return {ErrorCode::kConflict, "row " + number + " of the audit trail in " + where + " is damaged",
          "the rows before it can be read with before=" + number +
              "; a copy of the store made earlier has the row as it was"};
}

}  // namespace muster::state
