#include "rebuilt.h"

#include <algorithm>
#include <set>
#include <span>
#include <sstream>

namespace muster::properties {

using engine::Cluster;
using engine::Mode;
using engine::QueueId;

namespace {

std::string FirstDifferentLine(const std::string& left, const std::string& right) {
  std::istringstream a(left), b(right);
  std::string x, y;
  while (true) {
    const bool more_a = static_cast<bool>(std::getline(a, x));
    const bool more_b = static_cast<bool>(std::getline(b, y));
    if (!more_a && !more_b) return "";
    if (!more_a || !more_b || x != y) return "kept:  " + x + "\nbuilt: " + y;
  }
}

std::set<std::string> Names(const Cluster& cluster, std::span<const engine::JobId> jobs) {
  std::set<std::string> out;
  for (const auto job : jobs) out.insert(cluster.job(job).name);
  return out;
}

std::string DifferentLists(const Cluster& kept, const Cluster& built) {
  if (Names(kept, kept.Broken()) != Names(built, built.Broken())) return "broken jobs differ";
  for (QueueId q = 0; q < kept.queues().size(); ++q) {
    const auto& name = kept.queues().spec(q).name;
    if (Names(kept, kept.RunningIn(q)) != Names(built, built.RunningIn(q))) {
      return "running jobs of " + name + " differ";
    }
    if (kept.LowestVictimPriority(q) != built.LowestVictimPriority(q)) {
      return "lowest victim priorities of " + name + " differ";
    }
    if (kept.SurplusIn(q) != built.SurplusIn(q)) {
      return "surplus of " + name + ": kept " + std::to_string(kept.SurplusIn(q)) + ", built " +
             std::to_string(built.SurplusIn(q));
    }
  }
  for (engine::NodeId n = 0; n < kept.nodes().size(); ++n) {
    if (kept.WorkersOn(n).size() != built.WorkersOn(n).size()) return "workers on a node differ";
  }
  for (engine::TypeId t = 0; t < kept.nodes().type_count(); ++t) {
    for (const auto mode : {Mode::kFree, Mode::kFuture, Mode::kEmptied}) {
      if (kept.nodes().FreeMilli(t, mode) != built.nodes().FreeMilli(t, mode)) {
        return "free GPUs of type " + kept.nodes().type_name(t) + " differ";
      }
    }
    if (kept.nodes().usable_gpus(t) != built.nodes().usable_gpus(t)) return "usable GPUs differ";
  }
  return "";
}

std::string DifferentSlots(Cluster& kept, Cluster& built) {
  for (engine::ShapeId s = 0; s < built.shapes().size(); ++s) {
    for (engine::ShapeId k = 0; k < kept.shapes().size(); ++k) {
      if (!(kept.shapes()[k].spec == built.shapes()[s].spec)) continue;
      for (const auto mode : {Mode::kFree, Mode::kFuture, Mode::kEmptied}) {
        const auto have = kept.shapes().Slots(k, mode), want = built.shapes().Slots(s, mode);
        if (have == want) continue;
        return "slots of shape " + std::to_string(k) + " in mode " +
               std::to_string(static_cast<int>(mode)) + ": kept " + std::to_string(have) +
               ", built " + std::to_string(want);
      }
    }
  }
  return "";
}

std::string DifferentDomains(Cluster& kept, Cluster& built) {
  const auto level = kept.topology().Find("", "rack");
  const auto& domains = kept.topology().level(level).domains;
  for (engine::ShapeId s = 0; s < built.shapes().size(); ++s) {
    for (engine::ShapeId k = 0; k < kept.shapes().size(); ++k) {
      if (!(kept.shapes()[k].spec == built.shapes()[s].spec)) continue;
      for (engine::DomainId d = 0; d < domains.size(); ++d) {
        const auto have = kept.shapes().SlotsIn(k, level, d, Mode::kFree);
        const auto want = built.shapes().SlotsIn(s, level, d, Mode::kFree);
        if (have != want) return "slots in " + domains[d].name + " differ";
      }
    }
  }
  return "";
}

std::string DifferentPicks(Cluster& kept, Cluster& built) {
  const auto any = [](engine::BankId) { return true; };
  for (engine::ShapeId s = 0; s < built.shapes().size(); ++s) {
    for (engine::ShapeId k = 0; k < kept.shapes().size(); ++k) {
      if (!(kept.shapes()[k].spec == built.shapes()[s].spec)) continue;
      if (kept.worth().Pick(k, any) != built.worth().Pick(s, any)) {
        return "shape " + std::to_string(k) + " goes to different banks";
      }
    }
  }
  return "";
}

}  // namespace

std::string DiffersFromRebuilt(World& world) {
  const auto built = Build(world.Snapshot());
  Cluster& kept = world.cluster();
  if (auto wrong = FirstDifferentLine(kept.Dump(), built->Dump()); !wrong.empty()) return wrong;
  if (auto wrong = DifferentLists(kept, *built); !wrong.empty()) return wrong;
  if (auto wrong = DifferentSlots(kept, *built); !wrong.empty()) return wrong;
  if (auto wrong = DifferentDomains(kept, *built); !wrong.empty()) return wrong;
  return DifferentPicks(kept, *built);
}

}  // namespace muster::properties
