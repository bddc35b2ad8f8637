#include "control/reservations.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/units.h"
#include "control/access.h"
#include "model/vocabulary.h"

namespace muster::control {

using state::State;

namespace {

constexpr std::int64_t kFurthestMs = 366LL * 86'400'000;

tl::unexpected<Error> Wrong(std::string path, std::string message, std::string hint) {
  return tl::unexpected(
      Error{ErrorCode::kInvalid, std::move(message), std::move(hint), std::move(path)});
}

// The most GPUs of each node that others keep at any one moment of that time.
std::map<std::string, int> Kept(const State& state, const model::Reservation& wanted) {
  std::map<std::string, std::vector<std::pair<std::int64_t, int>>> changes;  // by node
  for (const auto& [name, record] : state.reservations()) {
    const auto& other = record.reservation;
    if (name == wanted.name) continue;
    if (other.from_ms >= wanted.to_ms || other.to_ms <= wanted.from_ms) continue;
    for (const auto& part : other.parts) {
      changes[part.node].emplace_back(std::max(other.from_ms, wanted.from_ms), part.gpus);
      changes[part.node].emplace_back(other.to_ms, -part.gpus);
    }
  }
  std::map<std::string, int> kept;
  for (auto& [node, list] : changes) {
    std::sort(list.begin(), list.end());  // of one moment what ends comes first
    int now = 0;
    for (const auto& [at_ms, change] : list) {
      now += change;
      kept[node] = std::max(kept[node], now);
    }
  }
  return kept;
}

struct Candidate {
  std::string node;
  int gpus = 0;
  int kept = 0;  // by others
  int Free() const { return std::max(0, gpus - kept); }
};

bool IsOfType(const model::Node& node, const std::string& type) {
  return std::all_of(node.gpus.begin(), node.gpus.end(),
                     [&](const auto& gpu) { return gpu.type == type; });
}

std::string Span(const model::Reservation& wanted) {
  return fmt::format("from {} to {}", FormatTimeMs(wanted.from_ms), FormatTimeMs(wanted.to_ms));
}

Result<std::vector<Candidate>> Candidates(const State& state, const ReservationWish& wish,
                                          const model::Reservation& wanted) {
  const auto kept = Kept(state, wanted);
  const auto here = [&](const model::Node& node) {
    const auto known = kept.find(node.name);
    return Candidate{node.name, static_cast<int>(node.gpus.size()),
                     known == kept.end() ? 0 : known->second};
  };
  std::vector<Candidate> list;
  for (const auto& name : std::set(wish.nodes.begin(), wish.nodes.end())) {
    const auto found = state.nodes().find(name);
    if (found == state.nodes().end()) {
      return Wrong("nodes", "there is no node \"" + name + "\"", "`muster nodes` lists them");
    }
    const auto& node = found->second.node;
    if (node.gpus.empty()) {
      return Wrong("nodes", "node " + name + " has no GPUs that could be kept",
                   "`muster node cordon` keeps new work away from it");
    }
    if (!wish.gpu_type.empty() && !IsOfType(node, wish.gpu_type)) {
      return Wrong("gpu_type", "node " + name + " has GPUs of another type than " + wish.gpu_type,
                   "leave the type out; `muster nodes` shows them");
    }
    list.push_back(here(node));
  }
  if (!wish.nodes.empty()) return list;
  for (const auto& [name, record] : state.nodes()) {
    const auto& node = record.node;
    if (!record.up || node.cordoned || node.draining || node.gpus.empty()) continue;
    if (!wish.gpu_type.empty() && !IsOfType(node, wish.gpu_type)) continue;
    list.push_back(here(node));
  }
  return list;
}

Result<std::vector<model::ReservedPart>> WholeNodes(const std::vector<Candidate>& nodes,
                                                    const model::Reservation& wanted) {
  std::vector<model::ReservedPart> parts;
  parts.reserve(nodes.size());
  for (const auto& node : nodes) {
    if (node.kept > 0) {
      return Wrong("nodes",
                   fmt::format("node {} has {} GPUs, of which {} are reserved already {}",
                               node.node, node.gpus, node.kept, Span(wanted)),
                   "`muster reservation list` shows by whom; name how many of them you need");
    }
    parts.push_back({node.node, node.gpus});
  }
  return parts;
}

Result<std::vector<model::ReservedPart>> SomeGpus(std::vector<Candidate> nodes,
                                                  const ReservationWish& wish,
                                                  const model::Reservation& wanted) {
  int all = 0, free = 0;
  for (const auto& node : nodes) {
    all += node.gpus;
    free += node.Free();
  }
  if (free < wish.gpus) {
    const auto type = wish.gpu_type.empty() ? "" : " of type " + wish.gpu_type;
    const auto where = wish.nodes.empty() ? "nodes that are up and not cordoned" : "these nodes";
    return Wrong(
        "gpus",
        fmt::format("there is no room for {} {}{} {}: {} have {}, of which {} are reserved "
                    "already",
                    wish.gpus, wish.gpus == 1 ? "GPU" : "GPUs", type, Span(wanted), where, all,
                    all - free),
        "ask for fewer or for another time; `muster reservation list` shows the others");
  }
  // Nodes of which nothing is kept first; then the largest, then by name, which they came in.
  std::stable_sort(nodes.begin(), nodes.end(), [](const Candidate& a, const Candidate& b) {
    if ((a.kept == 0) != (b.kept == 0)) return a.kept == 0;
    return a.Free() > b.Free();
  });
  std::vector<model::ReservedPart> parts;
  const Candidate* rest = nullptr;  // the smallest that is left, and has more than is left to find
  int left = wish.gpus;
  for (const auto& node : nodes) {
    if (node.Free() == 0 || left == 0) continue;
    if (node.Free() <= left) {
      parts.push_back({node.node, node.Free()});
      left -= node.Free();
    } else if (rest == nullptr || node.Free() < rest->Free()) {
      rest = &node;
    }
  }
  if (left > 0) parts.push_back({rest->node, left});
  std::sort(parts.begin(), parts.end(),
            [](const auto& a, const auto& b) { return a.node < b.node; });
  return parts;
}

Result<void> CheckTimes(const model::Reservation& wanted, std::int64_t now_ms) {
  if (wanted.to_ms <= wanted.from_ms) {
    return Wrong("to", "it would end before it begins: " + Span(wanted), "let it end later");
  }
  if (wanted.to_ms <= now_ms) {
    return Wrong("to", "its end, " + FormatTimeMs(wanted.to_ms) + ", is past",
                 "it is now " + FormatTimeMs(now_ms));
  }
  if (wanted.from_ms > now_ms + kFurthestMs) {
    return Wrong("from", "it would begin more than a year from now", "reserve it nearer the time");
  }
  return {};
}

}  // namespace

Result<model::Reservation> Book(const State& state, const ReservationWish& wish,
                                std::int64_t now_ms) {
  model::Reservation wanted{wish.name,  wish.queue, wish.from_ms.value_or(now_ms),
                            wish.to_ms, {},         wish.about};
  if (!model::IsName(wish.name)) {
    return Wrong("name", "\"" + wish.name + "\" is no name of a reservation",
                 "letters, digits, `.`, `_` and `-`, a letter or digit first, at most 128");
  }
  const auto& queues = state.queues();
  const bool known = std::any_of(queues.begin(), queues.end(),
                                 [&](const auto& queue) { return queue.name == wish.queue; });
  if (!wish.queue.empty() && !known) {
    return tl::unexpected(NoQueue(queues, nullptr, wish.queue));
  }
  if (auto times = CheckTimes(wanted, now_ms); !times) return tl::unexpected(times.error());
  if (wish.nodes.empty() && wish.gpus <= 0) {
    return Wrong("gpus", "it is not said what to reserve", "name `nodes`, or how many `gpus`");
  }
  const bool fresh = !state.reservations().contains(wish.name);
  if (fresh && state.reservations().size() >= kMostReservations) {
    return Fail(ErrorCode::kConflict,
                fmt::format("there are {} reservations, and no more may be", kMostReservations),
                "`muster reservation list` shows them; delete those that nobody needs");
  }
  auto nodes = Candidates(state, wish, wanted);
  if (!nodes) return tl::unexpected(nodes.error());
  auto parts =
      wish.gpus <= 0 ? WholeNodes(*nodes, wanted) : SomeGpus(std::move(*nodes), wish, wanted);
  if (!parts) return tl::unexpected(parts.error());
  wanted.parts = std::move(*parts);
  return wanted;
}

}  // namespace muster::control
