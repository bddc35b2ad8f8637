#include "api/listing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "base/units.h"
#include "control/view_parts.h"
#include "model/document_writer.h"
#include "model/fields.h"
#include "model/vocabulary.h"

namespace muster::api {
namespace {

using state::JobRecord;

enum class Kind : std::uint8_t { kNumber, kText, kTime };

struct Named {
  JobKey key;
  Kind kind;
  std::string_view path;
  std::string_view brief;  // for it as well; empty: none
};

// `gpus` was there before those that are held could be asked for, and stays what is asked for.
constexpr std::array kKeys = {
    Named{JobKey::kId, Kind::kNumber, "id", ""},
    Named{JobKey::kName, Kind::kText, "name", ""},
    Named{JobKey::kUser, Kind::kText, "user", ""},
    Named{JobKey::kQueue, Kind::kText, "queue", ""},
    Named{JobKey::kKind, Kind::kText, "kind", ""},
    Named{JobKey::kPriority, Kind::kNumber, "priority", ""},
    Named{JobKey::kCreatedAt, Kind::kTime, "created_at", ""},
    Named{JobKey::kRevision, Kind::kNumber, "revision", ""},
    Named{JobKey::kArray, Kind::kNumber, "array", ""},
    Named{JobKey::kArrayIndex, Kind::kNumber, "array_index", ""},
    Named{JobKey::kPhase, Kind::kText, "status.phase", "phase"},
    Named{JobKey::kGpus, Kind::kNumber, "status.gpus", ""},
    Named{JobKey::kGpusAsked, Kind::kNumber, "status.gpus_asked", "gpus"},
    Named{JobKey::kGpusAsked, Kind::kNumber, "status.gpus_asked", "gpus_asked"},
    Named{JobKey::kWorkersRunning, Kind::kNumber, "status.workers_running", "workers_running"},
    Named{JobKey::kWorkersMin, Kind::kNumber, "status.workers_min", "workers_min"},
    Named{JobKey::kWorkersMax, Kind::kNumber, "status.workers_max", "workers_max"},
    Named{JobKey::kStartedAt, Kind::kTime, "status.started_at", "started_at"},
    Named{JobKey::kRestarts, Kind::kNumber, "status.restarts", "restarts"},
    Named{JobKey::kPreempted, Kind::kNumber, "status.preempted", "preempted"},
};
constexpr std::string_view kLabels = "labels.";

constexpr std::int64_t kMostFields = 32;

std::int64_t NumberOf(JobKey key, const JobRecord& job) {
  switch (key) {
    case JobKey::kId:
      return static_cast<std::int64_t>(job.id) * kMilli;
    case JobKey::kPriority:
      return job.spec->priority * kMilli;
    case JobKey::kRevision:
      return static_cast<std::int64_t>(job.revision) * kMilli;
    case JobKey::kArray:
      return static_cast<std::int64_t>(job.array) * kMilli;
    case JobKey::kArrayIndex:
      return job.array == 0 ? -kMilli : job.array_index * kMilli;
    case JobKey::kGpus:
      return control::HeldGpuMilli(job);
    case JobKey::kWorkersRunning:
      return static_cast<std::int64_t>(job.Count(state::WorkerPhase::kRunning)) * kMilli;
    case JobKey::kWorkersMin:
      return control::LeastWorkers(*job.spec) * kMilli;
    case JobKey::kWorkersMax:
      return control::MostWorkers(*job.spec) * kMilli;
    case JobKey::kRestarts:
      return job.restarts * kMilli;
    case JobKey::kPreempted:
      return job.preempted * kMilli;
    case JobKey::kCreatedAt:
      return job.submitted_ms;
    case JobKey::kStartedAt:
      return job.started_ms;
    default:
      return state::GpuMilli(*job.spec);
  }
}

// `made` holds the text where none is there that could be pointed to.
std::string_view TextOf(const Condition& condition, const JobRecord& job, std::string& made) {
  switch (condition.of) {
    case JobKey::kPhase:
      return state::Name(state::PhaseOf(job));
    case JobKey::kUser:
      return job.user;
    case JobKey::kQueue:
      return job.spec->queue;
    case JobKey::kKind:
      return model::NameOf(job.spec->kind);
    case JobKey::kName:
      if (job.array == 0) return job.spec->name;
      made = job.name();
      return made;
    default:
      break;
  }
  const auto label = job.spec->labels.find(condition.key.substr(kLabels.size()));
  return label == job.spec->labels.end() ? std::string_view() : label->second;
}

// The values that there are; empty: any text.
std::vector<std::string_view> ValuesOf(JobKey key) {
  if (key == JobKey::kPhase) {
    std::vector<std::string_view> phases;
    phases.reserve(state::kPhases.size());
    for (const auto phase : state::kPhases) phases.push_back(state::Name(phase));
    return phases;
  }
  if (key == JobKey::kKind) return {model::kJobKindNames.begin(), model::kJobKindNames.end()};
  return {};
}

Kind KindOf(JobKey key) {
  const auto* const found =
      std::find_if(kKeys.begin(), kKeys.end(), [key](const auto& one) { return one.key == key; });
  return found == kKeys.end() ? Kind::kText : found->kind;
}

std::optional<JobKey> KeyNamed(std::string_view name) {
  for (const auto& one : kKeys) {
    if (name == one.path || (!one.brief.empty() && name == one.brief)) return one.key;
  }
  if (name.starts_with(kLabels) && name.size() > kLabels.size()) return JobKey::kLabel;
  return std::nullopt;
}

std::string AllKeys() {
  std::string list;
  for (const auto& one : kKeys) {
    if (one.brief == "gpus_asked") continue;
    fmt::format_to(std::back_inserter(list), "{}, ", one.path);
  }
  return list + "labels.KEY; `status.` may be left out, and `gpus` is status.gpus_asked";
}

bool Holds(const Condition& condition, const JobRecord& job) {
  if (KindOf(condition.of) != Kind::kText) {
    const auto number = NumberOf(condition.of, job);
    const bool never = condition.of == JobKey::kStartedAt && number == 0;
    if (never) return condition.op == Comparison::Op::kIsNot;
    return condition.Meets(number < condition.number ? -1 : number > condition.number ? 1 : 0);
  }
  std::string made;
  const auto text = TextOf(condition, job, made);
  if (condition.op == Comparison::Op::kContains) return text.find(condition.value) != text.npos;
  return condition.Meets(text == condition.value ? 0 : 1);
}

}  // namespace

Result<Condition> ParseCondition(Comparison words) {
  Condition condition{std::move(words)};
  const auto& key = condition.key;
  const auto known = KeyNamed(key);
  if (!known) {
    return WrongFilter(condition, "\"" + key + "\" is no key of a job", "there are: " + AllKeys());
  }
  condition.of = *known;
  const bool contains = condition.op == Comparison::Op::kContains;
  switch (KindOf(condition.of)) {
    case Kind::kNumber: {
      const auto number = ParseMilli(condition.value);
      if (!number || contains) {
        return WrongFilter(condition, "compares " + key + " with what is no number", key + ">=4");
      }
      condition.number = *number;
      return condition;
    }
    case Kind::kTime: {
      const auto time = ParseMomentMs(condition.value);
      if (!time || contains) {
        return WrongFilter(condition, "compares " + key + " with what is no time",
                           key + ">=2026-01-31 or " + key + ">=2026-01-31T12:30");
      }
      condition.number = *time;
      return condition;
    }
    case Kind::kText:
      break;
  }
  if (contains) return condition;
  if (!condition.IsEquality()) {
    return WrongFilter(condition, key + " is a text", "use =, != or ~");
  }
  const auto values = ValuesOf(condition.of);
  if (!values.empty() && std::find(values.begin(), values.end(), condition.value) == values.end()) {
    return WrongFilter(condition, "there is no " + key + " \"" + condition.value + "\"",
                       fmt::format("one of {}", fmt::join(values, ", ")));
  }
  return condition;
}

Result<std::vector<Condition>> ParseFilter(std::string_view text) {
  auto all = SplitFilter(text);
  if (!all) return tl::unexpected(all.error());
  std::vector<Condition> conditions;
  for (auto& one : *all) {
    auto condition = ParseCondition(std::move(one));
    if (!condition) return tl::unexpected(condition.error());
    conditions.push_back(std::move(*condition));
  }
  return conditions;
}

bool Holds(const std::vector<Condition>& conditions, const JobRecord& job) {
  return std::all_of(conditions.begin(), conditions.end(),
                     [&](const auto& condition) { return Holds(condition, job); });
}

Order ParseOrder(std::string_view text) {
  using state::SortBy;
  Order order;
  if (text.empty()) return order;
  order.descending = text.starts_with('-');
  const auto key = text.substr(order.descending ? 1 : 0);
  order.by = key == "name"       ? SortBy::kName
             : key == "user"     ? SortBy::kUser
             : key == "queue"    ? SortBy::kQueue
             : key == "priority" ? SortBy::kPriority
             : key == "gpus" || key == "status.gpus_asked"
                 ? SortBy::kGpus
                 : SortBy::kNumber;  // created_at too: numbers come in that order
  return order;
}

namespace {

// So that a cursor of another order is told from one of this.
std::string Mark(const Order& order) {
  return std::string(1, "inuqpg"[static_cast<std::size_t>(order.by)]) +
         (order.descending ? "d" : "a");
}

}  // namespace

std::string CursorOf(const Order& order, const JobRecord& job) {
  const auto value = state::JobOrder::ValueOf(order.by, job);
  const auto* number = std::get_if<std::int64_t>(&value);
  return fmt::format("{}{}.{}", Mark(order), job.id,
                     number != nullptr ? std::to_string(*number) : std::get<std::string>(value));
}

std::string CursorAt(model::JobNumber job) {
  return fmt::format("{}{}.{}", Mark(Order()), job, job);
}

Result<std::optional<Place>> ParseCursor(const std::string& cursor, const Order& order) {
  using state::SortBy;
  if (cursor.empty()) return std::nullopt;
  const auto mark = Mark(order);
  const auto text = cursor.starts_with(mark) ? cursor.substr(mark.size()) : std::string();
  const auto dot = std::min(text.find('.'), text.size());
  const auto id = model::ParseWhole(text.substr(0, dot));
  const auto rest = text.substr(std::min(dot + 1, text.size()));
  const bool is_text =
      order.by == SortBy::kName || order.by == SortBy::kUser || order.by == SortBy::kQueue;
  const auto number = model::ParseWhole(rest);
  if (!id || *id < 0 || dot == text.size() || (!is_text && !number)) {
    return tl::unexpected(Error{ErrorCode::kUsage, "this is no cursor of this list",
                                "take `next` of the page before, with the same `sort`", "cursor"});
  }
  Place place{state::JobOrder::Value(rest), static_cast<model::JobNumber>(*id)};
  if (!is_text) place.value = *number;
  return place;
}

namespace {

bool Knows(const Operation& operation, std::string_view name) {
  return std::any_of(operation.fields.begin(), operation.fields.end(), [name](const auto& one) {
    const std::string_view path = one.path;
    return name == path || (one.open && name.size() > path.size() + 1 && name.starts_with(path) &&
                            name[path.size()] == '.');
  });
}

tl::unexpected<Error> WrongFields(std::string what, std::string hint) {
  return tl::unexpected(Error{ErrorCode::kUsage, std::move(what), std::move(hint), "fields"});
}

}  // namespace

Result<void> CheckFields(const Operation& operation, std::string_view fields) {
  if (std::count(fields.begin(), fields.end(), ',') >= kMostFields) {
    return WrongFields(fmt::format("there are more than {} fields", kMostFields),
                       "leave out `fields` to get all of them");
  }
  while (!fields.empty()) {
    const auto comma = std::min(fields.find(','), fields.size());
    const auto name = fields.substr(0, comma);
    fields.remove_prefix(std::min(comma + 1, fields.size()));
    if (Knows(operation, name)) continue;
    std::string list;
    for (const auto& one : operation.fields) {
      fmt::format_to(std::back_inserter(list), "{}{}{}", list.empty() ? "" : ", ", one.path,
                     one.open ? "[.KEY]" : "");
    }
    return WrongFields(fmt::format("\"{}\" is no field of what this call answers with", name),
                       "there are: " + list);
  }
  return {};
}

model::DocNode Pick(const model::DocNode& node, const std::string& fields) {
  model::DocNode out = model::MapNode();
  for (std::string_view rest = fields; !rest.empty();) {
    const auto comma = std::min(rest.find(','), rest.size());
    const auto path = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    // A label's own name may have dots.
    const auto dot = node.Find(path) != nullptr ? std::string_view::npos : path.find('.');
    const auto key = path.substr(0, dot);
    const auto* found = node.Find(key);
    if (found == nullptr) continue;
    auto* there = const_cast<model::DocNode*>(out.Find(key));
    if (dot == std::string_view::npos || found->kind != model::DocKind::kMap) {
      if (there == nullptr) Put(out, key, *found);
      continue;
    }
    auto inner = Pick(*found, std::string(path.substr(dot + 1)));
    if (there == nullptr) {
      Put(out, key, std::move(inner));
    } else {
      for (auto& child : inner.children) {
        if (there->Find(child.key) == nullptr) there->children.push_back(std::move(child));
      }
    }
  }
  return out;
}

}  // namespace muster::api
