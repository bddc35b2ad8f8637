#include "train/run/view_work.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "train/compute/noise_scale.h"
#include "train/exact/shard_program.h"

namespace muster::train {

// A run of shards of a column.
struct ViewWork::Strand {
  int column = 0;
  int stage = 0;
  ShardRange run;
  std::int64_t batches = 1;  // that the program is for
  ShardProgram program;
  std::vector<Arena::Block> buffers;
  Exchange* exchange = nullptr;
  std::size_t first_node = 0;        // of those of the column at this worker
  std::vector<ShardResult> results;  // of the step, by shard

  std::span<float> At(int buffer) const {
    return buffers[static_cast<std::size_t>(buffer)].floats();
  }
};

namespace {

tl::unexpected<Error> BrokenOff() {
  return Fail(ErrorCode::kUnavailable, "the step was broken off");
}

// Of more workers than this each has so few shards that it needs less; if not, what does not fit
// lies outside of the arena.
constexpr int kMostCounted = 64;

// Buffers are those of two batches, which are enough for more.
ShardProgram LaneProgram(ShardRange lane, int shards, const SumOptions& sums) {
  return sums.batches.adapts() ? ProgramOver(lane, 2) : ProgramFor(lane, shards, sums.exact);
}

int LastColumn(const Grid& grid) { return grid.Column(grid.stages - 1, 0); }

}  // namespace

std::size_t GradientBytes(const Strategy& strategy, const SumOptions& sums,
                          std::span<const std::size_t> column_floats) {
  const int shards = strategy.grid.shards();
  std::size_t most = 0;
  View view;
  while (static_cast<int>(view.members.size()) < std::min(strategy.grid.cells(), kMostCounted)) {
    view.members.emplace_back();
    const auto layout = LayoutFor(strategy, view, 0);
    std::vector<std::size_t> bytes(view.members.size());
    for (std::size_t column = 0; column < column_floats.size(); ++column) {
      const auto& at = layout.columns[column];
      for (std::size_t i = 0; i < at.runs.size(); ++i) {
        for (const auto& lane : LaneRuns(at.runs[i], strategy.lanes)) {
          const auto program = LaneProgram(lane, shards, sums);
          auto& mine = bytes[static_cast<std::size_t>(at.computers[i])];
          mine +=
              static_cast<std::size_t>(program.buffers) * Arena::BytesFor(column_floats[column]);
          if (sums.half) mine += program.nodes.size() * Rounded::BytesFor(column_floats[column]);
        }
      }
    }
    most = std::max(most, *std::ranges::max_element(bytes));
  }
  return most;
}

ViewWork::ViewWork(const Parts& parts)
    : parts_(parts),
      courier_(parts.fabric, parts.layout, parts.strategy.lanes),
      numbers_(parts.fabric, parts.layout.members,
               parts.layout.At(LastColumn(parts.strategy.grid))) {
  for (int column = 0; column < parts.strategy.grid.columns(); ++column) AddColumn(column);
  const bool all = static_cast<int>(parts.layout.At(0).computers.size()) == parts.layout.members;
  if (parts.device != nullptr && all && parts.layout.members > 1) {
    group_ = std::make_unique<DeviceGroup>(*parts.device, parts.fabric, parts.layout.members);
  }
}

ViewWork::~ViewWork() {
  if (!finished_) parts_.fabric.Abort("this worker has stopped");
}

// Of what was offered in the last step only the numbers lie here and may still be on their way:
// gradients were used before the new parameters came back, and those lie in the state, which stays.
Result<void> ViewWork::Finish() {
  auto finished = numbers_.Finish();
  finished_ = finished.has_value();
  return finished;
}

void ViewWork::AddColumn(int column) {
  const int rank = parts_.fabric.rank();
  const auto run = parts_.layout.At(column).RunOf(rank);
  if (!run && parts_.layout.PartsAt(column, rank).empty()) return;
  auto& state = parts_.state.At(column);
  const Routes::Rule how{parts_.strategy.grid.shards(), parts_.strategy.lanes, parts_.sums.exact};
  std::vector<std::span<float>> nodes;
  std::vector<std::unique_ptr<Rounded>> rounded;
  const std::size_t first = strands_.size();
  for (const auto& lane : run ? LaneRuns(*run, how.lanes) : std::vector<ShardRange>()) {
    auto strand = std::make_unique<Strand>();
    strand->column = column;
    strand->stage = column / parts_.strategy.grid.slices;
    strand->run = lane;
    strand->program = ProgramFor(lane, how.shards, how.exact);
    strand->first_node = nodes.size();
    const int buffers = LaneProgram(lane, how.shards, parts_.sums).buffers;
    for (int i = 0; i < buffers; ++i) {
      strand->buffers.push_back(parts_.arena.Take(state.floats()));
    }
    for (const auto& node : strand->program.nodes) {
      nodes.push_back(strand->At(node.buffer));
      if (parts_.sums.half)
        rounded.push_back(std::make_unique<Rounded>(state.floats(), parts_.arena));
    }
    strands_.push_back(std::move(strand));
  }
  std::size_t most = 0;
  for (const auto& bucket : state.buckets()) most = std::max(most, bucket.size());
  auto hosts = HostsForRoutes(parts_.layout.At(column), parts_.layout.hosts, most * sizeof(float),
                              parts_.cost);
  exchanges_.push_back(std::make_unique<Exchange>(
      state, parts_.workload, parts_.fabric, parts_.layout, std::move(hosts), how, parts_.sums.half,
      parts_.arena, std::move(nodes), std::move(rounded)));
  for (std::size_t i = first; i < strands_.size(); ++i) {
    strands_[i]->exchange = exchanges_.back().get();
  }
}

namespace {

// Sums up buckets as their gradients become final, and passes on what is complete.
class Progress final : public ShardProgress {
 public:
  using At = std::function<std::span<float>(int buffer)>;
  // `batches`: that a sum is divided by when it is complete.
  Progress(const Buckets& buckets, const Fabric& fabric, const ShardProgram& program,
           std::size_t index, const At& at, const std::function<void(std::size_t bucket)>& complete,
           bool measured, std::int64_t batches)
      : buckets_(buckets),
        fabric_(fabric),
        program_(program),
        compute_(program.computes[index]),
        at_(at),
        complete_(complete),
        measured_(measured),
        batches_(batches) {}

  double square() const { return square_; }

  bool Need(Extent /*parameters*/) override { return !fabric_.aborted(); }
  bool Ready(std::size_t first) override {
    for (; done_ < buckets_.size() && buckets_[done_].first >= first; ++done_) {
      const auto& bucket = buckets_[done_];
      if (measured_) {
        square_ += SquareNorm(at_(compute_.buffer).subspan(bucket.first, bucket.size()));
      }
      for (const auto& add : compute_.adds) {
        const auto into = at_(add.into).subspan(bucket.first, bucket.size());
        const auto from = at_(add.from).subspan(bucket.first, bucket.size());
        for (std::size_t i = 0; i < into.size(); ++i) into[i] += from[i];
      }
      if (compute_.node < 0) continue;
      if (batches_ > 1) Average(bucket);
      complete_(done_);
    }
    return !fabric_.aborted();
  }

 private:
  void Average(const Extent& bucket) {
    const int buffer = program_.nodes[static_cast<std::size_t>(compute_.node)].buffer;
    const auto share = 1 / static_cast<float>(batches_);
    for (float& value : at_(buffer).subspan(bucket.first, bucket.size())) value *= share;
  }

  const Buckets& buckets_;
  const Fabric& fabric_;
  const ShardProgram& program_;
  const ShardProgram::Compute& compute_;
  const At& at_;
  const std::function<void(std::size_t bucket)>& complete_;
  bool measured_;
  std::int64_t batches_;
  double square_ = 0;     // of the shard alone
  std::size_t done_ = 0;  // buckets
};

}  // namespace

bool ViewWork::Backward(Strand& strand, std::size_t index, const UpdateStep& step) {
  const auto& compute = strand.program.computes[index];
  const auto& state = parts_.state.At(strand.column);
  const Progress::At at = [&strand](int buffer) { return strand.At(buffer); };
  const std::function<void(std::size_t)> complete = [&](std::size_t bucket) {
    strand.exchange->NodeReady(bucket, strand.first_node + static_cast<std::size_t>(compute.node));
  };
  Progress progress(state.buckets(), parts_.fabric, strand.program, index, at, complete,
                    Measured(step), step.batches);
  Courier::Cell cell(courier_, strand.column, compute.shard);
  const auto result = parts_.columns[static_cast<std::size_t>(strand.column)]->Backward(
      step.completed + compute.batch, compute.shard, state.Parameters(step.completed),
      strand.At(compute.buffer), cell, progress);
  const bool good = !parts_.fabric.aborted() && progress.Ready(0);
  auto& sum = strand.results[static_cast<std::size_t>(compute.shard - strand.run.first)];
  sum.loss += result.loss;
  sum.samples += result.samples;
  sum.square += progress.square();
  return good;
}

// Where one column is all there is: the squares of a shard would have to be summed over the others.
bool ViewWork::Measured(const UpdateStep& step) const {
  const auto& grid = parts_.strategy.grid;
  const auto every = parts_.measure_every;
  if (every <= 0 || grid.columns() > 1 || grid.data < 2 || summed_) return false;
  return step.completed % every == 0 || step.completed / every != (step.last() - 1) / every;
}

// Never past the end of the run.
UpdateStep ViewWork::NextStep() const {
  UpdateStep out{.completed = parts_.state.completed()};
  if (!parts_.sums.batches.adapts()) return out;
  out.batches = RoundEnd(out.completed, next_.batches, parts_.steps) - out.completed;
  out.rate = RateFactor(parts_.sums.batches.rule, static_cast<double>(out.batches), 1, next_.noise);
  return out;
}

namespace {

// Passes buckets on whose own part is summed up.
class DeviceProgress final : public ShardProgress {
 public:
  DeviceProgress(const Buckets& buckets, const Fabric& fabric, Exchange& exchange)
      : buckets_(buckets), fabric_(fabric), exchange_(exchange) {}
  bool Need(Extent /*parameters*/) override { return !fabric_.aborted(); }
  bool Ready(std::size_t first) override {
    for (; done_ < buckets_.size() && buckets_[done_].first >= first; ++done_) {
      exchange_.NodeReady(done_, 0);
    }
    return !fabric_.aborted();
  }

 private:
  const Buckets& buckets_;
  const Fabric& fabric_;
  Exchange& exchange_;
  std::size_t done_ = 0;
};

}  // namespace

// All shards at once: there is one column, and one strand.
bool ViewWork::RunOnDevice(Strand& strand, const UpdateStep& step) {
  const auto& state = parts_.state.At(strand.column);
  for (int shard = strand.run.first; shard < strand.run.last; ++shard) {
    if (parts_.audit == nullptr || parts_.audit->Take(step.completed, strand.column, shard))
      continue;
    parts_.fabric.Abort("the audit cannot be written");
    return false;
  }
  DeviceProgress progress(state.buckets(), parts_.fabric, *strand.exchange);
  auto results = parts_.device->Compute(
      {step.completed, strand.run, state.buckets(), parts_.layout.members, parts_.fabric.rank()},
      state.Parameters(step.completed), strand.At(0), progress);
  if (!results) {
    parts_.fabric.Abort(results.error().message);
    return false;
  }
  strand.results = std::move(*results);
  return progress.Ready(0);
}

bool ViewWork::RunStrand(Strand& strand, const UpdateStep& step) {
  if (summed_) return RunOnDevice(strand, step);
  auto& work = *parts_.columns[static_cast<std::size_t>(strand.column)];
  const auto parameters = parts_.state.At(strand.column).Parameters(step.completed);
  if (strand.batches != step.batches) {
    strand.program = ProgramOver(strand.run, static_cast<int>(step.batches));
    strand.batches = step.batches;
  }
  const std::size_t shards = strand.program.computes.size();
  const auto ahead = static_cast<std::size_t>(parts_.strategy.grid.stages - 1 - strand.stage);
  strand.results.assign(static_cast<std::size_t>(strand.run.size()), {});
  courier_.Take();
  bool good = true;
  for (std::size_t i = 0; good && i < shards + ahead; ++i) {
    if (i < shards) {
      const int shard = strand.program.computes[i].shard;
      const auto at = step.completed + strand.program.computes[i].batch;
      // First, for what is computed may be summed by others whatever becomes of this worker.
      if (parts_.audit != nullptr && !parts_.audit->Take(at, strand.column, shard)) {
        parts_.fabric.Abort("the audit cannot be written");
        good = false;
        break;
      }
      Courier::Cell cell(courier_, strand.column, shard);
      good = work.Forward(at, shard, parameters, cell);
    }
    if (good && i >= ahead) good = Backward(strand, i - ahead, step);
  }
  courier_.Give();
  return good;
}

Result<StepNumbers> ViewWork::Step(const AskWord& word) {
  const auto step = NextStep();
  const auto completed = step.completed;
  const auto begun_ns = parts_.clock.MonotonicNs();
  double square_before = 0;
  for (const auto& exchange : exchanges_) square_before += exchange->square();
  courier_.Begin(completed);
  for (auto& exchange : exchanges_) exchange->Begin(step, Measured(step), summed_);
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < strands_.size(); ++i) {
    threads.emplace_back([this, i, &step] { RunStrand(*strands_[i], step); });
  }
  if (!strands_.empty()) RunStrand(*strands_[0], step);
  for (auto& thread : threads) thread.join();
  if (parts_.fabric.aborted()) return BrokenOff();
  const auto compute_ns = parts_.clock.MonotonicNs() - begun_ns;
  std::vector<ShardResult> mine;
  for (const auto& strand : strands_) {
    if (strand->column != LastColumn(parts_.strategy.grid)) continue;
    mine.insert(mine.end(), strand->results.begin(), strand->results.end());
  }
  // The memory of the step before the last is written when all gradients of the next are there, so
  // every worker must have this one by then: who computes has, before it computes the next; who
  // does not has, before it tells its numbers.
  const auto finish = [this]() -> Result<void> {
    for (auto& exchange : exchanges_) {
      if (auto finished = exchange->Finish(); !finished) return finished;
    }
    return {};
  };
  if (strands_.empty()) {
    if (const auto finished = finish(); !finished) return tl::unexpected(finished.error());
    parts_.state.Complete(step.last());
  }
  Word said = word(step.last());
  said.square_before = square_before;
  said.joined = group_ != nullptr && group_->joined();
  auto numbers = numbers_.Swap(completed, mine, said);
  if (!strands_.empty()) {
    if (const auto finished = finish(); !finished) return tl::unexpected(finished.error());
  }
  if (!numbers) return numbers;
  if (const auto finished = courier_.Finish(); !finished) {
    return tl::unexpected(finished.error());
  }
  parts_.state.Complete(step.last());
  next_ = numbers->next;
  const bool measured = Measured(step);
  summed_ = group_ != nullptr && numbers->joined;
  numbers->compute_ns = compute_ns;
  numbers->measured = std::exchange(measured_, {});
  numbers->measured_batches = std::exchange(measured_batches_, step.batches);
  if (measured) measured_ = numbers->shards;
  return numbers;
}

}  // namespace muster::train
