// Listing: which jobs a list shows, in which order, and where its next page begins.
//
// Conditions are texts of people ("phase=running,gpus>=4"); what cannot be understood is refused
// with what can. A cursor is a place in an order and not a count, so no job that stays is skipped
// or shown twice, whatever comes and goes between two pages.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/filter.h"
#include "api/router.h"
#include "base/result.h"
#include "control/controller.h"
#include "model/document.h"

namespace muster::api {

// What can be asked of a job, as the OpenAPI document lists it for `filter`.
enum class JobKey : std::uint8_t {
  kId,
  kName,
  kUser,
  kQueue,
  kKind,
  kPriority,
  kCreatedAt,
  kRevision,
  kArray,
  kArrayIndex,
  kPhase,
  kGpus,
  kGpusAsked,
  kWorkersRunning,
  kWorkersMin,
  kWorkersMax,
  kStartedAt,
  kRestarts,
  kPreempted,
  kLabel,
};

struct Condition : Comparison {
  JobKey of = JobKey::kId;
  std::int64_t number = 0;  // of the value, for keys that are numbers or times
};

Result<Condition> ParseCondition(Comparison words);
Result<std::vector<Condition>> ParseFilter(std::string_view text);
bool Holds(const std::vector<Condition>& conditions, const state::JobRecord& job);

// "-priority": by which key, and whether the largest come first.
struct Order {
  state::SortBy by = state::SortBy::kNumber;
  bool descending = true;
};
Order ParseOrder(std::string_view text);

// Where a page ended, as a text that the next request brings back; it holds for its order only.
using Place = state::JobOrder::Place;
std::string CursorOf(const Order& order, const state::JobRecord& job);
std::string CursorAt(model::JobNumber job);  // of a list by number
Result<std::optional<Place>> ParseCursor(const std::string& cursor, const Order& order);

// Only these keys of each object, "status.phase" for one inside another. Checked first: what the
// call does not know is refused with what it does.
Result<void> CheckFields(const Operation& operation, std::string_view fields);
model::DocNode Pick(const model::DocNode& node, const std::string& fields);

}  // namespace muster::api
