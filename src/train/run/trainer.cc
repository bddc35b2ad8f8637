#include "train/run/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "train/compute/noise_scale.h"
#include "train/members/members.h"
#include "train/members/terms.h"
#include "train/run/arena.h"
#include "train/run/async_work.h"
#include "train/run/audit.h"
#include "train/run/layout.h"
#include "train/run/live_round.h"
#include "train/run/scribe.h"
#include "train/run/state.h"
#include "train/run/tags.h"
#include "train/run/update_log.h"
#include "train/run/view_work.h"

namespace muster::train {

namespace {

constexpr std::int64_t kLookAgainNs = 100'000'000;  // at a folder that all workers share
constexpr Tag kInstalled = kMeetTags;
constexpr std::byte kHere{1};
constexpr std::byte kUnwell{2};
constexpr Tag kReleased = kInstalled + 1;
constexpr Tag kFinished = kInstalled + 2;

std::vector<Buckets> BucketsFor(const ColumnWorks& columns, std::size_t most_floats) {
  std::vector<Buckets> out;
  out.reserve(columns.size());
  for (const auto& column : columns) out.push_back(BucketsOf(column->LayerFloats(), most_floats));
  return out;
}

// What the parameters after a step depend on; the last bits too, where a run is exact.
std::string RunOf(const TrainOptions& options, const Workload& workload) {
  const auto& grid = options.strategy.grid;
  const auto rule =
      options.batches.adapts()
          ? fmt::format("; batches {}:{}; measured {}", static_cast<int>(options.batches.rule),
                        options.batches.most, options.noise_every)
          : "";
  const auto how =
      fmt::format("seed {}; shards {}; stages {}; slices {}; mode {}; exact {}; half {}{}",
                  options.seed, grid.shards(), grid.stages, grid.slices,
                  static_cast<int>(options.strategy.mode), options.exact, options.half, rule);
  return JoinTerms(JoinTerms(workload.Describe(), how),
                   options.exact ? workload.ComputedWith() : "");
}

// What makes the plans of two workers differ if it differs, beside the run; and the time-out: who
// beats by a longer one would be lost to those with a shorter one again and again.
std::string TermsOf(const TrainOptions& options, const std::vector<Buckets>& buckets,
                    int state_floats) {
  const auto& grid = options.strategy.grid;
  std::vector<std::size_t> floats;  // of each column: where stages are cut
  std::size_t cuts = 0;
  for (const auto& column : buckets) {
    floats.push_back(0);
    for (const auto& bucket : column) floats.back() += bucket.size();
    cuts += column.size();
  }
  const auto& strategy = options.strategy;
  return fmt::format(
      "steps {}; micro {}; servers {}; staleness {}; round {}; lanes {}; mirrors {}; parameters "
      "{}; "
      "buckets {}; state {}; checkpoints {}; timeout-ms {}",
      options.steps, grid.micro, strategy.servers, strategy.staleness, strategy.round,
      strategy.lanes, options.mirrors, fmt::join(floats, "+"), cuts, state_floats,
      options.checkpoints.empty() ? "none" : "kept", options.mesh.timeout_ms);
}

// Sums on devices have an order of their own, of whole batches of whole models.
DeviceSum* DeviceOf(const TrainOptions& options, Workload& workload) {
  const auto& strategy = options.strategy;
  const bool plain = strategy.grid.columns() == 1 && strategy.lanes == 1 && strategy.servers == 0;
  const bool fast = !options.exact && !options.half && !options.batches.adapts();
  return plain && fast ? workload.device_sum() : nullptr;
}

Result<void> CheckBatches(const TrainOptions& options) {
  if (!options.batches.adapts()) return {};
  if (options.exact) {
    return Fail(ErrorCode::kInvalid, "an exact run keeps its batch",
                "give --exact false with --adapt-batch, or a larger --batch instead");
  }
  if (options.strategy.mode != Mode::kSynchronous) {
    return Fail(ErrorCode::kInvalid,
                "asynchronous servers apply each gradient by itself: there is no batch to adapt",
                "leave --adapt-batch out, or the mode of the servers");
  }
  const auto& grid = options.strategy.grid;
  if (grid.columns() > 1) {
    return Fail(
        ErrorCode::kInvalid, "the noise that a batch adapts to is not known where the model is cut",
        "leave --adapt-batch out, or choose the strategy data, mirrored, server or central");
  }
  if (grid.data < 2 || options.noise_every <= 0) {
    return Fail(ErrorCode::kInvalid,
                "the noise that a batch adapts to is measured between shards, every few steps",
                "give --shards 2 or more, and --noise-every more than 0");
  }
  return {};
}

Result<void> CheckOptions(const TrainOptions& options) {
  if (options.exact && options.half) {
    return Fail(ErrorCode::kInvalid, "sums of rounded gradients are not exact",
                "give --exact false with --half");
  }
  const bool asynchronous = options.strategy.mode != Mode::kSynchronous;
  if (asynchronous && options.half) {
    return Fail(ErrorCode::kInvalid, "asynchronous servers take gradients as they are",
                "leave --half out");
  }
  if (asynchronous && !options.audit.empty()) {
    return Fail(ErrorCode::kInvalid, "an audit is of steps, which asynchronous servers do not have",
                "--update-log says which unit was applied when");
  }
  return CheckBatches(options);
}

SumOptions SumsOf(const TrainOptions& options) {
  return {options.exact, options.half, options.batches};
}

// One membership of this worker: from joining to finishing, leaving or being left behind.
class Session {
 public:
  Session(Workload& workload, const ColumnWorks& columns, Clock& clock, const TrainOptions& options,
          const TrainEvents& events, const std::atomic<bool>& leave, Members& members, Audit* audit,
          const std::string& run)
      : workload_(workload),
        columns_(columns),
        clock_(clock),
        options_(options),
        events_(events),
        leave_(leave),
        members_(members),
        arena_(members.mesh().memory()),
        state_(BucketsFor(columns, options.bucket_floats), workload.StateFloats(), arena_, run),
        checkpoints_(options.checkpoints),
        scribe_(checkpoints_,
                [&events](std::int64_t step, const Error& why) {
                  if (events.checkpointed) events.checkpointed({step, tl::unexpected(why)});
                }),
        audit_(audit),
        plan_(options.batches) {}

  Result<TrainEnd> Run() {
    while (true) {
      const auto turn = members_.Next(standing_);
      if (!turn) return tl::unexpected(turn.error());
      if (turn->kind == Turn::Kind::kFinished) return TrainEnd::kFinished;
      if (turn->kind == Turn::Kind::kLeft) return TrainEnd::kLeft;
      if (turn->kind == Turn::Kind::kLeftBehind) return TrainEnd::kLeftBehind;
      const auto end = Live(turn->change);
      if (end) return *end;
      standing_.completed = state_.completed();
      standing_.holdings = state_.Holdings();
    }
  }

  bool arrived() const { return arrived_; }  // a view with this worker came about

 private:
  // One view. None: there has to be another one.
  std::optional<Result<TrainEnd>> Live(const ChangeMessage& change) {
    const bool planned = std::exchange(standing_.planned, false);
    if (change.view.members.empty()) return Pause(change.view);
    const auto fabric = members_.Enter(change.view);
    if (!fabric) return std::nullopt;
    auto end = LiveIn(change, **fabric, planned);
    // Whatever it was that went wrong here, the others shall not wait for this worker.
    if (!end && !standing_.planned) (*fabric)->Abort("this worker has stopped");
    if (const auto logged = Logged(); !logged) return tl::unexpected(logged.error());
    return end;
  }

  // Who cannot account for its samples does not go on.
  Result<void> Logged() const { return audit_ == nullptr ? Result<void>() : audit_->status(); }

  static CheckpointView WriterOf(const View& view) {
    const auto& who = view.members.empty() ? view.leaving : view.members;
    return {view.generation, who.empty() ? 0 : who.front().id};
  }

  int columns() const { return static_cast<int>(columns_.size()); }

  // All leave: each writes whatever it holds of the state, and nobody waits for anybody. Who finds
  // that it was the last says so.
  Result<TrainEnd> Pause(const View& view) {
    if (options_.checkpoints.empty()) return TrainEnd::kPaused;
    scribe_.Wait();
    const auto writer = WriterOf(view);
    const auto parts = state_.Copy(view.step, writer, true);
    for (const auto& part : parts) {
      if (auto written = checkpoints_.Write(part); !written) return tl::unexpected(written.error());
    }
    const bool complete = !parts.empty() && checkpoints_.Complete(view.step, writer, columns());
    if (complete && events_.checkpointed) events_.checkpointed({view.step, {}, true});
    return TrainEnd::kPaused;
  }

  std::optional<Result<TrainEnd>> LiveIn(const ChangeMessage& change, Fabric& fabric,
                                         bool planned) {
    const auto layout = LayoutFor(options_.strategy, change.view, options_.mirrors);
    const auto start = [this](int column, std::span<float> parameters) {
      columns_[static_cast<std::size_t>(column)]->Start(options_.seed, parameters);
    };
    const auto installed = state_.Install(change, layout, fabric, start, checkpoints_);
    if (!installed && installed.error().code == ErrorCode::kConflict) {
      return tl::unexpected(
          Error{ErrorCode::kInvalid, installed.error().message, installed.error().hint});
    }
    if (!installed || !Meet(fabric, fabric.size(), kInstalled, true)) return std::nullopt;
    const auto rank = change.view.RankOf(members_.id());
    if (!Part(fabric, static_cast<int>(change.view.members.size()))) return std::nullopt;
    if (!rank) return TrainEnd::kLeft;
    state_.Keep();
    arrived_ = true;
    const int workers = static_cast<int>(change.view.members.size());
    if (change.view.waits) {
      standing_.planned = true;
      return std::nullopt;
    }
    const auto resized = [&] {
      if (!events_.resized) return;
      events_.resized({change.view.generation, change.view.step, workers, planned,
                       last_step_ns_ == 0 ? 0 : clock_.MonotonicNs() - last_step_ns_, *rank,
                       static_cast<int>(change.view.servers.size()), SpeaksFor(change, *rank)});
    };
    return Work(change.view, layout, fabric, *rank, resized);
  }

  // One says what the change took: the first of those who were there before it.
  static bool SpeaksFor(const ChangeMessage& change, int rank) {
    const auto& members = change.view.members;
    const auto first = std::ranges::find_if(
        members, [&](const Endpoint& member) { return change.holdings.contains(member.id); });
    return rank == (first == members.end() ? 0 : first - members.begin());
  }

  // Those who leave do so when no member would mind any more.
  static bool Part(Fabric& fabric, int members) {
    const int rank = fabric.rank();
    const bool leaves = rank >= members;
    for (int peer = members; leaves && peer < fabric.size(); ++peer) {
      if (peer != rank) fabric.Release(peer);
    }
    for (int peer = leaves ? 0 : members; peer < (leaves ? members : fabric.size()); ++peer) {
      if (!leaves) {
        fabric.Release(peer);
        fabric.Offer(peer, kReleased, std::span(&kHere, 1));
      } else if (std::byte there{}; !fabric.Fetch(peer, kReleased, std::span(&there, 1))) {
        return false;
      }
    }
    return true;
  }

  // All of the first so many have come this far. Gives whether it is well with each of them, as it
  // says; none: somebody is lost.
  static std::optional<bool> Meet(Fabric& fabric, int count, Tag where, bool well) {
    std::vector<int> others;
    for (int peer = 0; peer < count; ++peer) {
      if (peer != fabric.rank()) others.push_back(peer);
    }
    for (const int peer : others) fabric.Offer(peer, where, std::span(well ? &kHere : &kUnwell, 1));
    for (const int peer : others) {
      std::byte there{};
      if (!fabric.Fetch(peer, where, std::span(&there, 1))) return std::nullopt;
      well = well && there == kHere;
    }
    for (const int peer : others) {
      if (!fabric.Taken(peer, where)) return std::nullopt;
    }
    return well;
  }

  // What this worker does in the view: steps, or asynchronous ones, a round at a time.
  struct Steps {
    std::function<Result<StepNumbers>(const AskWord& word)> one;
    std::function<Result<void>()> finish;
  };
  template <typename Work>
  static Steps StepsOf(std::shared_ptr<Work> work) {
    return {[work](const AskWord& word) { return work->Step(word); },
            [work] { return work->Finish(); }};
  }
  Result<Steps> StepsIn(const View& view, const Layout& layout, Fabric& fabric) {
    if (options_.strategy.mode != Mode::kSynchronous) {
      return StepsOf(std::make_shared<AsyncWork>(
          AsyncWork::Parts{workload_, options_.strategy, layout, state_, fabric, arena_, live_,
                           view.generation, options_.steps, options_.update_log}));
    }
    const auto cost = ProbeLinks(fabric, layout);
    if (!cost) return tl::unexpected(cost.error());
    return StepsOf(std::make_shared<ViewWork>(
        ViewWork::Parts{workload_, columns_, options_.strategy, SumsOf(options_), layout, state_,
                        fabric, arena_, audit_, clock_, options_.noise_every, options_.steps,
                        DeviceOf(options_, workload_), *cost}));
  }

  std::optional<Result<TrainEnd>> Work(const View& view, const Layout& layout, Fabric& fabric,
                                       int rank, const std::function<void()>& begins) {
    const auto begun = StepsIn(view, layout, fabric);
    if (!begun) return std::nullopt;  // somebody was lost
    const Steps& steps = *begun;
    begins();
    if (audit_ != nullptr) audit_->Enter(view, options_.strategy.grid);
    std::int64_t before = 0;
    const AskWord word = [&](std::int64_t completed) { return WordOf(before, completed); };
    asked_to_leave_ = false;
    while (state_.completed() < options_.steps) {
      before = state_.completed();
      const auto numbers = steps.one(word);
      if (!numbers && numbers.error().code == ErrorCode::kInvalid) {
        return tl::unexpected(numbers.error());
      }
      if (!numbers) return std::nullopt;
      last_step_ns_ = clock_.MonotonicNs();
      if (audit_ != nullptr) audit_->Done(state_.completed());
      plan_.Follow(numbers->next);
      Measure(*numbers);
      Report(view, layout, rank, *numbers, state_.completed() - before);
      FollowCheckpoint(rank, *numbers);
      if (numbers->checkpoint) BeginCheckpoint(view, rank);
      scribe_.PruneIfIdle();
      if (numbers->stop && state_.completed() < options_.steps) {
        standing_.planned = steps.finish().has_value();
        return std::nullopt;
      }
    }
    const bool written = WriteLast(view, rank);
    if (!steps.finish()) return std::nullopt;
    if (options_.collect) {
      const auto kept = Collect(layout, fabric, rank);
      if (!kept) return std::nullopt;
      if (!*kept) return tl::unexpected(kept->error());
    }
    // The job is finished when all have all of it; who is lost here was the last to have something.
    const auto all_written = Meet(fabric, layout.members, kFinished, written);
    if (!all_written) return std::nullopt;
    if (*all_written && !options_.checkpoints.empty()) SayLast(view, rank);
    scribe_.PruneIfIdle();
    const auto finished = members_.Finish(options_.steps);
    if (!finished) return tl::unexpected(finished.error());
    return TrainEnd::kFinished;
  }

  // At the end of the step from `before` to `completed`.
  Word WordOf(std::int64_t before, std::int64_t completed) {
    if (leave_ && !std::exchange(asked_to_leave_, true)) members_.Leave();
    Word out;
    out.stop = asked_to_leave_ || (members_.IsChief() && members_.ChangeWanted());
    out.next = plan_.next();
    if (options_.checkpoints.empty()) return out;
    const auto every = options_.checkpoint_every;
    const bool due = every > 0 && completed / every != before / every;
    if (options_.checkpoints_asked != nullptr) checkpoints_asked_ = *options_.checkpoints_asked;
    out.checkpoint = due || checkpoints_asked_ != checkpoints_seen_;
    out.busy = scribe_.busy();  // first: who is not has said how it went
    out.unwritten = scribe_.unwritten();
    return out;
  }

  // All do so after the same step. Where all have written the one before, and it is not to be seen,
  // they have written to other folders.
  void BeginCheckpoint(const View& view, int rank) {
    const bool unseen = std::exchange(look_again_ns_, 0) != 0;
    if (rank == 0 && unseen && begun_.writer == WriterOf(view)) SayUnseen(begun_.step);
    checkpoints_seen_ = checkpoints_asked_;
    begun_ = {state_.completed(), WriterOf(view)};
    scribe_.Write(state_.Copy(begun_.step, begun_.writer, false));
  }

  // A checkpoint is complete when nobody has anything to write of it any more, and all of it is to
  // be seen in the folder.
  void FollowCheckpoint(int rank, const StepNumbers& numbers) {
    if (begun_.step == Scribe::kNothing) return;
    if (numbers.unwritten == begun_.step) {
      if (numbers.busy) return;
      if (rank == 0) scribe_.Discard(begun_.step, begun_.writer);
      begun_ = {};
      return;
    }
    const auto now_ns = clock_.MonotonicNs();
    if (now_ns < look_again_ns_) return;
    look_again_ns_ = now_ns + kLookAgainNs;
    if (!checkpoints_.Complete(begun_.step, begun_.writer, columns())) return;
    look_again_ns_ = 0;
    SayComplete(begun_.step, rank);
    begun_ = {};
  }

  void SayUnseen(std::int64_t step) {
    const std::string why = "parts of other workers are not in " + options_.checkpoints;
    if (events_.checkpointed) {
      events_.checkpointed(
          {step,
           Fail(ErrorCode::kNotFound, why,
                "give --checkpoints a folder that the machines of all workers see"),
           true});
    }
  }

  void SayComplete(std::int64_t step, int rank) {
    if (step == complete_) return;
    complete_ = step;
    if (events_.checkpointed) events_.checkpointed({step, {}, rank == 0});
    if (rank == 0) scribe_.WantPrune();
  }

  void SayLast(const View& view, int rank) {
    const auto step = state_.completed();
    const bool read = !view.checkpoint.empty() && view.step == step;
    if (read || complete_ == step || checkpoints_.Complete(step, WriterOf(view), columns())) {
      SayComplete(step, rank);
    } else if (rank == 0) {
      SayUnseen(step);
    }
  }

  // Of the last step. False: this worker could not.
  bool WriteLast(const View& view, int rank) {
    const auto step = state_.completed();
    const bool there = complete_ == step || (!view.checkpoint.empty() && view.step == step);
    if (options_.checkpoints.empty() || there) return true;
    if (begun_ != Begun{step, WriterOf(view)}) BeginCheckpoint(view, rank);
    scribe_.Wait();
    return scribe_.unwritten() != step;
  }

  // The first who computes a column hands it to those who do not, and the first of all keeps them.
  // None: somebody is lost.
  std::optional<Result<void>> Collect(const Layout& layout, Fabric& fabric, int rank) {
    std::vector<std::vector<float>> out(columns_.size());
    for (int column = 0; column < columns(); ++column) {
      const auto& at = layout.At(column);
      const auto& state = state_.At(column);
      const Tag tag = StepTag(state_.completed(), column, TagKind::kColumn);
      auto& values = out[static_cast<std::size_t>(column)];
      if (at.Computes(rank)) {
        const auto whole = state.Parameters(state_.completed());
        values.assign(whole.begin(), whole.end());
        for (int peer = 0; rank == at.computers[0] && peer < layout.members; ++peer) {
          if (!at.Computes(peer)) fabric.Offer(peer, tag, std::as_bytes(whole));
        }
        continue;
      }
      values.resize(state.floats());
      const auto into = std::as_writable_bytes(std::span(values));
      if (!fabric.Fetch(at.computers[0], tag, into)) return std::nullopt;
    }
    if (events_.collected) events_.collected(out);
    return rank == 0 && events_.keep ? events_.keep(out) : Result<void>();
  }

  void Measure(const StepNumbers& numbers) {
    if (numbers.measured.empty()) return;
    std::vector<ShardNorm> norms;
    norms.reserve(numbers.measured.size());
    std::int64_t samples = 0;
    for (const auto& shard : numbers.measured) {
      norms.push_back({shard.samples, shard.square});
      samples += shard.samples;
    }
    noise_.Add(norms, numbers.square_before, numbers.measured_batches);
    plan_.Measured(noise_,
                   static_cast<double>(samples) / static_cast<double>(numbers.measured_batches));
  }

  // `taken`: batches, since the report before.
  void Report(const View& view, const Layout& layout, int rank, const StepNumbers& numbers,
              std::int64_t taken) {
    if (!events_.stepped) return;
    StepReport report{.step = state_.completed(),
                      .workers = static_cast<int>(view.members.size()),
                      .servers = static_cast<int>(view.servers.size()),
                      .rank = rank,
                      .generation = view.generation};
    for (int column = 0; column < columns(); ++column) {
      const auto run = layout.At(column).RunOf(rank);
      if (!run) continue;
      report.columns.push_back({column, *run, state_.At(column).Parameters(state_.completed())});
    }
    for (const auto& shard : numbers.shards) {
      report.loss += shard.loss;
      report.samples += shard.samples;
    }
    if (report.samples > 0) report.loss /= static_cast<double>(report.samples);
    if (options_.strategy.mode == Mode::kSynchronous) report.batches = taken;
    report.compute_ns = numbers.compute_ns;
    report.noise_scale = noise_.value();
    events_.stepped(report);
  }

  Workload& workload_;
  const ColumnWorks& columns_;
  Clock& clock_;
  const TrainOptions& options_;
  const TrainEvents& events_;
  const std::atomic<bool>& leave_;
  Members& members_;
  Arena arena_;
  TrainState state_;
  LiveRound live_;
  CheckpointFolder checkpoints_;
  Scribe scribe_;
  Audit* audit_;
  Standing standing_;
  bool arrived_ = false;
  std::int64_t last_step_ns_ = 0;
  bool asked_to_leave_ = false;                                // in this view
  std::int64_t checkpoints_asked_ = 0, checkpoints_seen_ = 0;  // those are begun
  struct Begun {
    std::int64_t step = Scribe::kNothing;
    CheckpointView writer = {};
    friend bool operator==(const Begun&, const Begun&) = default;
  };
  Begun begun_;  // the last one, until it is known what came of it
  std::int64_t complete_ = Scribe::kNothing;
  std::int64_t look_again_ns_ = 0;  // whether it is; 0: nobody has looked in vain
  NoiseScale noise_;
  BatchPlan plan_;
};

}  // namespace

Result<TrainEnd> Train(Workload& workload, Store& store, Clock& clock, const TrainOptions& options,
                       const TrainEvents& events, const std::atomic<bool>& leave) {
  if (auto fits = CheckOptions(options); !fits) return tl::unexpected(fits.error());
  const auto& grid = options.strategy.grid;
  if (!options.update_log.empty() && options.strategy.mode != Mode::kSynchronous) {
    if (auto opened = OpenUpdateLog(options.update_log, store); !opened) {
      return tl::unexpected(opened.error());
    }
  }
  ColumnWorks columns;
  std::vector<std::size_t> floats;
  for (int column = 0; column < grid.columns(); ++column) {
    auto work =
        workload.Column({grid.stages, column / grid.slices, grid.slices, column % grid.slices});
    if (!work) return tl::unexpected(work.error());
    const auto layers = (*work)->LayerFloats();
    floats.push_back(std::accumulate(layers.begin(), layers.end(), std::size_t{0}));
    columns.push_back(std::move(*work));
  }
  std::unique_ptr<Audit> audit;
  if (!options.audit.empty()) {
    auto opened = Audit::Open(options.audit, workload);
    if (!opened) return tl::unexpected(opened.error());
    audit = std::move(*opened);
  }
  const bool apart = grid.columns() > 1 || options.strategy.servers > 0;
  MembersOptions joining;
  joining.mesh = options.mesh;
  joining.mesh.memory_bytes =
      TrainState::BytesFor(floats, workload.StateFloats(), apart ? 1 : grid.cells()) +
      GradientBytes(options.strategy, SumsOf(options), floats) +
      AsyncBytes(options.strategy, floats.front());
  joining.min_workers = options.min_workers;
  joining.first_workers = options.first_workers;
  joining.server = options.server;
  const auto buckets = BucketsFor(columns, options.bucket_floats);
  joining.recoverable = [buckets](const Holdings& holdings, std::int64_t step) {
    return Recoverable(holdings, step, buckets);
  };
  using Named = std::optional<std::pair<std::string, std::int64_t>>;
  joining.newest_checkpoint = [&options]() -> Result<Named> {
    if (options.checkpoints.empty()) return std::nullopt;
    return CheckpointFolder(options.checkpoints).Newest();
  };
  joining.lost = [&events](LostHow how) {
    if (events.lost) events.lost({how});
  };
  const auto run = RunOf(options, workload);
  joining.terms = JoinTerms(run, TermsOf(options, buckets, workload.StateFloats()));
  while (true) {
    auto members = Members::Open(joining, store, clock, leave);
    if (!members) return tl::unexpected(members.error());
    Session session(workload, columns, clock, options, events, leave, **members, audit.get(), run);
    auto end = session.Run();
    if (!end || *end != TrainEnd::kLeftBehind) return end;
    // From here on it is a new worker for the others.
    joining.setbacks = session.arrived() ? 0 : joining.setbacks + 1;
  }
}

}  // namespace muster::train
