#include "train/run/replay.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "train/run/live_round.h"

namespace muster::train {

namespace {

class AllOfIt final : public ShardProgress {
 public:
  bool Need(Extent /*parameters*/) override { return true; }
  bool Ready(std::size_t /*first*/) override { return true; }
  bool SameInStep() const override { return false; }
};

// Of all parts together; the parts of a round are cut out of it and put back.
struct Whole {
  std::vector<float> parameters;
  std::vector<std::vector<float>> planes;  // of the optimiser's state
};

class RoundReplay {
 public:
  RoundReplay(Workload& workload, std::span<const Extent> buckets, const UpdateRound& round,
              Whole& whole)
      : workload_(workload), round_(round), whole_(whole) {
    for (const auto& log : round) {
      parts_.push_back({PartCut(buckets, log.parts, log.part, workload.StateFloats()), {}, {}, 0});
      for (const auto& update : log.updates) ++gradients_[KeyOf(update)].uses;
    }
    for (const auto& [key, gradient] : gradients_) {
      for (std::size_t q = 0; q < parts_.size(); ++q) ++parts_[q].versions[key.second[q]].uses;
    }
    for (auto& part : parts_) {
      Cut(part);
      Keep(part);
    }
  }

  Result<void> Run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t p = 0; p < parts_.size(); ++p) {
        while (parts_[p].next < round_[p].updates.size() &&
               Ready(round_[p].updates[parts_[p].next])) {
          Apply(p);
          moved = true;
        }
      }
    }
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      if (parts_[p].next == round_[p].updates.size()) continue;
      return Fail(ErrorCode::kInvalid,
                  fmt::format("part {} of the round from step {}: update {} is of parameters that "
                              "there never were",
                              p, round_[p].from, parts_[p].next));
    }
    for (const auto& part : parts_) PutBack(part);
    return {};
  }

 private:
  using Key = std::pair<std::int64_t, std::vector<std::int64_t>>;  // unit, bases
  struct Kept {
    std::int64_t uses = 0;  // to come
    std::vector<float> values;
  };
  struct Part {
    PartCut cut;
    PartValues values;
    std::map<std::int64_t, Kept> versions;  // parameters that some gradient still needs
    std::size_t next = 0;                   // update
  };

  static Key KeyOf(const Update& update) { return {update.unit, update.bases}; }
  std::int64_t First() const { return round_[0].from * round_[0].shards; }
  std::int64_t VersionOf(const Part& part) const {
    return First() + static_cast<std::int64_t>(part.next);
  }

  bool Ready(const Update& update) const {
    for (std::size_t q = 0; q < parts_.size(); ++q) {
      if (update.bases[q] > VersionOf(parts_[q])) return false;
    }
    return true;
  }

  void Keep(Part& part) {
    const auto found = part.versions.find(VersionOf(part));
    if (found != part.versions.end()) found->second.values = part.values.parameters;
  }

  const std::vector<float>& GradientOf(const Update& update) {
    auto& kept = gradients_[KeyOf(update)];
    if (!kept.values.empty()) return kept.values;
    std::vector<float> parameters(whole_.parameters.size());
    for (std::size_t q = 0; q < parts_.size(); ++q) {
      const auto version = parts_[q].versions.find(update.bases[q]);
      parts_[q].cut.Spread(version->second.values, parameters);
      if (--version->second.uses == 0) parts_[q].versions.erase(version);
    }
    kept.values.resize(parameters.size());
    AllOfIt progress;
    workload_.Compute(update.unit / round_[0].shards,
                      static_cast<int>(update.unit % round_[0].shards), parameters, kept.values,
                      progress);
    return kept.values;
  }

  void Apply(std::size_t p) {
    auto& part = parts_[p];
    const auto& update = round_[p].updates[part.next];
    std::vector<float> gradient(part.cut.floats());
    part.cut.Collect(GradientOf(update), gradient);
    const auto kept = gradients_.find(KeyOf(update));
    if (--kept->second.uses == 0) gradients_.erase(kept);
    PartValues after;
    part.cut.Update(workload_, VersionOf(part), gradient, part.values, after);
    part.values = std::move(after);
    ++part.next;
    Keep(part);
  }

  void Cut(Part& part) const {
    part.values.parameters.resize(part.cut.floats());
    part.cut.Collect(whole_.parameters, part.values.parameters);
    for (std::size_t i = 0; i < part.cut.buckets(); ++i) {
      const auto at = part.cut.InColumn(i);
      for (const auto& plane : whole_.planes) {
        const auto piece = std::span(plane).subspan(at.first, at.size());
        part.values.state.insert(part.values.state.end(), piece.begin(), piece.end());
      }
    }
  }

  void PutBack(const Part& part) {
    part.cut.Spread(part.values.parameters, whole_.parameters);
    for (std::size_t i = 0; i < part.cut.buckets(); ++i) {
      const auto at = part.cut.InColumn(i);
      auto from = std::span(part.values.state).subspan(part.cut.InState(i).first);
      for (auto& plane : whole_.planes) {
        std::ranges::copy(from.first(at.size()), std::span(plane).subspan(at.first).begin());
        from = from.subspan(at.size());
      }
    }
  }

  Workload& workload_;
  const UpdateRound& round_;
  Whole& whole_;
  std::vector<Part> parts_;
  std::map<Key, Kept> gradients_;
};

}  // namespace

Result<std::vector<float>> Replay(Workload& workload, std::span<const Extent> buckets,
                                  std::uint64_t seed, const std::vector<UpdateRound>& rounds) {
  std::size_t floats = 0;
  for (const auto& bucket : buckets) floats += bucket.size();
  Whole whole{std::vector<float>(floats), {}};
  for (int i = 0; i < workload.StateFloats(); ++i) whole.planes.emplace_back(floats);
  workload.Start(seed, whole.parameters);
  for (const auto& round : rounds) {
    auto done = RoundReplay(workload, buckets, round, whole).Run();
    if (!done) return tl::unexpected(done.error());
  }
  return std::move(whole.parameters);
}

}  // namespace muster::train
