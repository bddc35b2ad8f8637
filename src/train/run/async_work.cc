#include "train/run/async_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <thread>
#include <utility>

#include "base/check.h"
#include "train/run/part_line.h"
#include "train/run/unit_queue.h"

namespace muster::train {

namespace {

// Workers for which a copy of the parameters lies in memory that they can read; to more of them it
// is sent.
constexpr std::size_t kRoomFor = 4;

class UntilAborted final : public ShardProgress {
 public:
  explicit UntilAborted(const Fabric& fabric) : fabric_(fabric) {}
  bool Need(Extent /*parameters*/) override { return !fabric_.aborted(); }
  bool Ready(std::size_t /*first*/) override { return !fabric_.aborted(); }
  bool SameInStep() const override { return false; }

 private:
  const Fabric& fabric_;
};

tl::unexpected<Error> BrokenOff() {
  return Fail(ErrorCode::kUnavailable, "the round was broken off");
}

}  // namespace

std::size_t AsyncBytes(const Strategy& strategy, std::size_t floats) {
  if (strategy.mode == Mode::kSynchronous) return 0;
  return kRoomFor * Arena::BytesFor(floats);
}

AsyncWork::AsyncWork(const Parts& parts)
    : parts_(parts),
      at_(parts.layout.At(0)),
      column_(parts.state.At(0)),
      numbers_(parts.fabric, parts.layout.members, at_) {
  const auto own = std::ranges::find(at_.owners, parts.fabric.rank());
  if (own != at_.owners.end()) own_ = CutOf(static_cast<int>(own - at_.owners.begin()));
}

AsyncWork::~AsyncWork() {
  if (!finished_) parts_.fabric.Abort("this worker has stopped");
}

Result<void> AsyncWork::Finish() {
  auto finished = numbers_.Finish();
  finished_ = finished.has_value();
  return finished;
}

PartCut AsyncWork::CutOf(int part) const {
  return {column_.buckets(), at_.parts(), part, parts_.workload.StateFloats()};
}

void AsyncWork::BeginAnew() {
  auto& live = parts_.live;
  const auto& mine = column_.parts().front();
  live.attempt = parts_.generation;
  live.from = from_;
  live.parts = own_->parts();
  live.part = own_->part();
  live.applied.assign(static_cast<std::size_t>(Units()), 0);
  live.updates.clear();
  live.values.parameters.clear();
  live.values.state.clear();
  for (std::size_t i = 0; i < own_->buckets(); ++i) {
    const auto parameters = column_.ParametersOf(mine, from_, i);
    const auto state = column_.StateOf(mine, from_, i);
    live.values.parameters.insert(live.values.parameters.end(), parameters.begin(),
                                  parameters.end());
    live.values.state.insert(live.values.state.end(), state.begin(), state.end());
  }
}

// Owners tell each other what they have of the round. All of the same attempt: they go on with it;
// else all begin anew. Gives the units that all have applied.
Result<std::vector<std::uint8_t>> AsyncWork::Agree() {
  auto& live = parts_.live;
  const auto units = static_cast<std::size_t>(Units());
  const bool same = live.from == from_ && live.parts == own_->parts() &&
                    live.part == own_->part() && live.applied.size() == units;
  if (!same) live.attempt = 0;
  std::vector<std::uint8_t> told(sizeof live.attempt + units);
  std::memcpy(told.data(), &live.attempt, sizeof live.attempt);
  if (live.attempt != 0) std::ranges::copy(live.applied, told.begin() + sizeof live.attempt);
  const Tag tag = TagOf(from_, AsyncTag::kAgree);
  std::vector<Offers> offers;
  for (const int owner : at_.owners) {
    if (owner == parts_.fabric.rank()) continue;
    offers.emplace_back(parts_.fabric, owner).Add(tag, std::as_bytes(std::span(told)));
  }
  bool alike = live.attempt != 0;
  std::vector<std::uint8_t> everywhere(told.begin() + sizeof live.attempt, told.end());
  std::vector<std::uint8_t> theirs(told.size());
  for (const int owner : at_.owners) {
    if (owner == parts_.fabric.rank()) continue;
    const auto into = std::as_writable_bytes(std::span(theirs));
    const auto fetched = parts_.fabric.Fetch(owner, tag, into);
    if (!fetched) return tl::unexpected(fetched.error());
    alike = alike && std::memcmp(theirs.data(), &live.attempt, sizeof live.attempt) == 0;
    for (std::size_t i = 0; i < units; ++i) everywhere[i] &= theirs[sizeof live.attempt + i];
  }
  for (auto& offer : offers) {
    if (const auto taken = offer.Taken(); !taken) return tl::unexpected(taken.error());
  }
  if (alike) return everywhere;
  BeginAnew();
  return live.applied;
}

Result<void> AsyncWork::Run(ShardResult& mine) {
  std::unique_ptr<UnitQueue> queue;
  std::unique_ptr<PartServer> server;
  std::vector<Arena::Block> copies;
  std::vector<std::thread> threads;
  const int rank = parts_.fabric.rank();
  const auto must = [this](const Result<void>& done) {
    if (!done) parts_.fabric.Abort(done.error().message);
  };
  if (own_) {
    const auto applied = Agree();
    if (!applied) return tl::unexpected(applied.error());
    if (own_->part() == 0) {
      std::deque<std::int64_t> units;
      for (std::size_t i = 0; i < applied->size(); ++i) {
        const auto first = from_ * parts_.strategy.grid.shards();
        if ((*applied)[i] == 0) units.push_back(first + static_cast<std::int64_t>(i));
      }
      const bool bounded = parts_.strategy.mode == Mode::kBounded;
      queue = std::make_unique<UnitQueue>(
          std::move(units), at_.computers,
          bounded ? std::optional(parts_.strategy.staleness) : std::nullopt);
    }
    server = std::make_unique<PartServer>(
        parts_.workload, parts_.fabric, *own_, parts_.live,
        PartServer::View{parts_.generation, parts_.strategy.grid.shards(), queue.get()});
    for (const int worker : at_.computers) {
      if (worker == rank) continue;
      copies.push_back(parts_.arena.Take(own_->floats()));
      threads.emplace_back([worker, &must, &server, into = copies.back().floats()] {
        must(server->Serve(worker, into));
      });
    }
  }
  if (at_.Computes(rank)) must(Work(server.get(), mine));
  for (auto& thread : threads) thread.join();
  if (parts_.fabric.aborted()) return BrokenOff();
  return {};
}

Result<void> AsyncWork::Work(PartServer* here, ShardResult& mine) {
  const auto block = parts_.arena.Take(column_.floats());  // longer than those who offer it
  const auto gradient = block.floats();
  std::vector<PartLine> lines;
  for (int part = 0; part < at_.parts(); ++part) {
    const int owner = at_.owners[static_cast<std::size_t>(part)];
    lines.emplace_back(parts_.fabric, owner, CutOf(part), from_,
                       owner == parts_.fabric.rank() ? here : nullptr);
  }
  const int shards = parts_.strategy.grid.shards();
  const auto parameters = column_.Parameters(to_);  // nobody needs what lies there before the end
  UntilAborted progress(parts_.fabric);
  Update update{.worker = parts_.fabric.rank(), .bases = {}};
  update.bases.resize(lines.size());
  while (true) {
    lines[0].Ask(0);
    const auto first = lines[0].Receive(parameters);
    if (!first) return tl::unexpected(first.error());
    if (first->unit == AsyncReply::kNoUnit) break;
    update.unit = first->unit;
    update.bases[0] = first->version;
    for (std::size_t i = 1; i < lines.size(); ++i) lines[i].Ask(update.unit);
    for (std::size_t i = 1; i < lines.size(); ++i) {
      const auto reply = lines[i].Receive(parameters);
      if (!reply) return tl::unexpected(reply.error());
      update.bases[i] = reply->version;
    }
    const auto result =
        parts_.workload.Compute(update.unit / shards, static_cast<int>(update.unit % shards),
                                parameters, gradient, progress);
    if (parts_.fabric.aborted()) return BrokenOff();
    mine.loss += result.loss;
    mine.samples += result.samples;
    for (auto& line : lines) line.Push(update, gradient);
    for (auto& line : lines) {
      if (auto applied = line.Applied(); !applied) return applied;
    }
  }
  for (auto& line : lines) {
    if (auto ended = line.End(); !ended) return ended;
  }
  return {};
}

void AsyncWork::HandOut(int peer, bool with_state) {
  const auto& mine = column_.parts().front();
  auto& offers = handed_.emplace_back(parts_.fabric, peer);
  for (std::size_t i = 0; i < own_->buckets(); ++i) {
    if (own_->InPart(i).size() == 0) continue;
    offers.Add(TagOf(from_, AsyncTag::kFinal, i),
               std::as_bytes(column_.ParametersOf(mine, to_, i)));
    const auto state = column_.StateOf(mine, to_, i);
    if (with_state && !state.empty()) {
      offers.Add(TagOf(from_, AsyncTag::kFinalState, i), std::as_bytes(state));
    }
  }
}

// The log first: whatever becomes of the parameters, it can be told how they came about.
Result<void> AsyncWork::Publish() {
  const auto& live = parts_.live;
  MUSTER_CHECK(live.updates.size() == static_cast<std::size_t>(Units()),
               "a round ends when every unit is applied");
  if (!parts_.update_log.empty()) {
    const auto written =
        WriteUpdateLog(parts_.update_log, {from_, to_, parts_.strategy.grid.shards(), own_->parts(),
                                           own_->part(), parts_.generation, live.updates});
    if (!written) {
      return Fail(ErrorCode::kInvalid,
                  fmt::format("the log of updates cannot be written: {}", written.error().message),
                  "check the folder that --update-log names");
    }
  }
  const auto& mine = column_.parts().front();
  for (std::size_t i = 0; i < own_->buckets(); ++i) {
    const auto part = own_->InPart(i), state = own_->InState(i);
    std::ranges::copy(std::span(live.values.parameters).subspan(part.first, part.size()),
                      column_.ParametersOf(mine, to_, i).begin());
    std::ranges::copy(std::span(live.values.state).subspan(state.first, state.size()),
                      column_.StateOf(mine, to_, i).begin());
  }
  const int rank = parts_.fabric.rank();
  const auto mirrors = parts_.layout.MirrorsOf(rank);
  for (int peer = 0; peer < parts_.layout.members; ++peer) {
    const bool mirror = std::ranges::find(mirrors, peer) != mirrors.end();
    if (peer != rank && (mirror || at_.Computes(peer))) HandOut(peer, mirror);
  }
  return {};
}

Result<void> AsyncWork::Gather() {
  const int rank = parts_.fabric.rank();
  const auto fetch = [&](int owner, AsyncTag what, std::size_t bucket,
                         std::span<float> into) -> Result<void> {
    if (into.empty()) return {};
    return parts_.fabric.Fetch(owner, TagOf(from_, what, bucket), std::as_writable_bytes(into));
  };
  for (int part = 0; at_.Computes(rank) && part < at_.parts(); ++part) {
    const int owner = at_.owners[static_cast<std::size_t>(part)];
    const auto cut = CutOf(part);
    for (std::size_t i = 0; owner != rank && i < cut.buckets(); ++i) {
      const auto at = cut.InColumn(i);
      auto fetched =
          fetch(owner, AsyncTag::kFinal, i, column_.Parameters(to_).subspan(at.first, at.size()));
      if (!fetched) return fetched;
    }
  }
  for (const auto& part : column_.parts()) {
    const int owner = at_.owners[static_cast<std::size_t>(part.part)];
    for (std::size_t i = 0; !part.own && i < column_.buckets().size(); ++i) {
      if (part.with_parameters) {
        auto fetched = fetch(owner, AsyncTag::kFinal, i, column_.ParametersOf(part, to_, i));
        if (!fetched) return fetched;
      }
      auto fetched = fetch(owner, AsyncTag::kFinalState, i, column_.StateOf(part, to_, i));
      if (!fetched) return fetched;
    }
  }
  return {};
}

Result<StepNumbers> AsyncWork::Step(const AskWord& word) {
  from_ = parts_.state.completed();
  to_ = RoundEnd(from_, parts_.strategy.round, parts_.steps);
  column_.Begin(to_);
  ShardResult mine;
  if (const auto ran = Run(mine); !ran) return tl::unexpected(ran.error());
  if (own_) {
    if (const auto published = Publish(); !published) return tl::unexpected(published.error());
  }
  if (const auto gathered = Gather(); !gathered) return tl::unexpected(gathered.error());
  parts_.state.Complete(to_);
  const auto run = at_.RunOf(parts_.fabric.rank()).value_or(ShardRange{});
  std::vector<ShardResult> row(static_cast<std::size_t>(run.size()));
  if (!row.empty()) row[0] = mine;
  auto numbers = numbers_.Swap(from_, row, word(to_));
  if (!numbers) return numbers;
  for (auto& offers : std::exchange(handed_, {})) {
    if (const auto taken = offers.Taken(); !taken) return tl::unexpected(taken.error());
  }
  return numbers;
}

}  // namespace muster::train
