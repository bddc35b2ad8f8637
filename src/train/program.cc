#include "train/program.h"

#include <fmt/format.h>
#include <ftw.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/secret.h"
#include "train/compute/matrix.h"
#include "train/exact/hash.h"
#include "train/launcher.h"
#include "train/meeting.h"
#include "train/members/keys.h"
#include "train/run/kept_model.h"
#include "train/run/replay.h"
#include "train/run/shim_line.h"
#include "train/run/trainer.h"

namespace muster::train {
namespace {

constexpr std::int64_t kSecondNs = 1'000'000'000;

constexpr std::int64_t kMostCount = std::int64_t{1} << 30U;  // of anything that is counted
constexpr int kSignalStatus = 128;        // and the signal: how a shell says what ended a program
constexpr const char* kKeptKey = "kept";  // in the store: the file of the model

std::atomic<bool> told_to_leave{false};
std::atomic<int> told_by{0};  // the first signal to
std::atomic<std::int64_t> checkpoints_asked{0};

struct Flags {
  ModelRun run;
  TrainOptions train;
  std::string strategy = "data";
  std::string adapt_batch;  // empty: it stays as it is
  MeetingFlags meeting;
  std::string keep;  // the file of the model; empty: none
  std::string test;  // one that was kept; empty: train
  int workers = 0;
  WorkerNews* news = nullptr;  // of a worker that another process started
  bool quiet = false;
  bool speaks = false;  // whatever its rank
  bool every_step = false;
  std::string replay;
};

// tidy: allow debugging: this is the body of programs
void Print(const std::string& line, std::FILE* to) { std::fputs((line + "\n").c_str(), to); }

void Say(const std::string& line) {
  Print(line, stdout);
  std::fflush(stdout);
}

int Complain(const std::string& program, const Error& error) {
  Print(program + ": " + Describe(error), stderr);
  return ExitStatus(error.code);
}

// Not by std::filesystem: torch 2.11 exports functions of an older one, and calling those crashes.
void RemoveFolder(const std::string& folder) {
  const auto one = [](const char* path, const struct stat* /*facts*/, int /*kind*/,
                      struct FTW* /*where*/) { return std::remove(path); };
  ::nftw(folder.c_str(), one, 16, FTW_DEPTH | FTW_PHYS);
}

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// There a pause is no failure, and who paused it knows.
bool UnderMuster() {
  return !Variable("MUSTER_SOCKET").empty() || !Variable("MUSTER_JOB_ID").empty();
}

// What a run that was ended before its last step leaves behind, and the status that says so.
int Stopped(const TrainProgram& program, const Flags& flags, std::int64_t step, int number) {
  if (UnderMuster() || number == 0) return 0;
  const auto& folder = flags.train.checkpoints;
  const auto kept = folder.empty() ? "nothing was kept: --checkpoints FOLDER keeps it"
                                   : "the same command goes on from what is in " + folder;
  Print(
      fmt::format("{}: stopped at step {} of {}; {}", program.name, step, flags.train.steps, kept),
      stderr);
  return kSignalStatus + number;
}

// What is said on the way: to people about once a second, by the worker that has rank 0 just then
// or by the first of those that were started together; to the scheduler by every worker.
class Reporter {
 public:
  Reporter(const Flags& flags, const TrainOptions& options, Clock& clock, ShimLine* shim)
      : flags_(flags),
        clock_(clock),
        shim_(shim),
        most_batches_(MostBatches(options.batches)),
        has_servers_(options.strategy.servers > 0) {}

  bool stepped() const { return last_step_ > 0; }
  std::int64_t step() const { return last_step_; }

  void Stepped(const StepReport& report) {
    const auto now_ns = clock_.MonotonicNs();
    // Speeds are those of one batch: with another, they count from the step before.
    const bool other = std::exchange(batches_, report.batches) != report.batches;
    if (other && began_ns_ != 0) Restart(stepped_ns_);
    stepped_ns_ = now_ns;
    const auto taken = last_step_ > 0 ? (report.step - last_step_) / report.batches : 1;
    steps_ += std::max<std::int64_t>(taken, 1);
    last_step_ = report.step;
    samples_ += report.samples;
    compute_ns_ += report.compute_ns;
    if (flags_.every_step) SayStep(report);
    if (said_ns_ == 0) {
      said_ns_ = now_ns;
      return Restart(now_ns);
    }
    if (now_ns - said_ns_ < kSecondNs && report.step != flags_.train.steps) return;
    said_ns_ = now_ns;
    const double seconds = static_cast<double>(now_ns - began_ns_) / 1e9;
    const double rate = seconds > 0 ? static_cast<double>(samples_) / seconds : 0;
    if ((report.rank == 0 || flags_.speaks) && !flags_.quiet && !flags_.every_step) {
      const auto batch = flags_.adapt_batch.empty() ? "" : fmt::format("batch {}  ", Batch());
      Say(fmt::format("step {}/{}  loss {:.4f}  {}  {}{:.0f} samples/s", report.step,
                      flags_.train.steps, report.loss, GangOf(report.workers, report.servers),
                      batch, rate));
    }
    if (shim_ != nullptr) {
      contract::Progress progress;
      progress.step = report.step;
      progress.samples = report.step * static_cast<std::int64_t>(flags_.run.batch);
      const auto steps = static_cast<double>(steps_);
      progress.numbers = {{"loss", report.loss},
                          {"workers", report.workers},
                          {"batch", static_cast<double>(Batch())},
                          {"step_ms", seconds * 1e3 / steps},
                          {"compute_ms", static_cast<double>(compute_ns_) / 1e6 / steps},
                          {"samples_per_s", rate},
                          {"resize_ms", resize_ms_}};
      if (!flags_.adapt_batch.empty()) {
        const auto first = static_cast<double>(flags_.run.batch);
        progress.numbers["first_batch"] = first;
        progress.numbers["most_batch"] = first * static_cast<double>(most_batches_);
      }
      if (report.noise_scale) progress.numbers["noise_scale"] = *report.noise_scale;
      if (const auto at_ns = checkpoint_ns_.load(); at_ns != 0) {
        progress.numbers["checkpoint_age_s"] = static_cast<double>(now_ns - at_ns) / 1e9;
      }
      shim_->Say(progress);
    }
    Restart(now_ns);
  }
  void Resized(const ResizeReport& report) {
    if (flags_.news != nullptr) flags_.news->begun = true;
    resize_ms_ = static_cast<double>(report.pause_ns) / 1e6;
    said_ns_ = stepped_ns_ = clock_.MonotonicNs();
    Restart(stepped_ns_);  // speeds are those of one size
    if (shim_ != nullptr && report.speaks && report.pause_ns > 0) {
      shim_->Say(contract::Resized{report.workers, report.pause_ns / 1'000'000, report.step});
    }
    if (flags_.quiet || flags_.every_step || report.pause_ns == 0) return;
    Say(fmt::format("step {}: {} from here on; the change took {:.0f} ms", report.step,
                    GangOf(report.workers, report.servers), resize_ms_));
  }
  void Checkpointed(const CheckpointReport& report) {
    if (!report.written) {
      Print(fmt::format("no checkpoint of step {}: {}", report.step,
                        Describe(report.written.error())),
            stderr);
      return;
    }
    checkpoint_ns_ = clock_.MonotonicNs();
    if (shim_ != nullptr && report.speaks) {
      shim_->Say(contract::Checkpointed{report.step, flags_.train.checkpoints, 0});
    }
  }

 private:
  // "3 workers, 2 servers", of so many members.
  std::string GangOf(int members, int servers) const {
    const int serve = has_servers_ ? servers : 0;
    const int workers = members - serve;
    auto text = fmt::format("{} {}", workers, workers == 1 ? "worker" : "workers");
    if (serve == 0) return text;
    return fmt::format("{}, {} {}", text, serve, serve == 1 ? "server" : "servers");
  }
  // Samples of the last step.
  std::int64_t Batch() const { return batches_ * static_cast<std::int64_t>(flags_.run.batch); }
  void Restart(std::int64_t now_ns) {
    began_ns_ = now_ns;
    steps_ = samples_ = compute_ns_ = 0;
  }
  // As the worker that tests use says it: see tests/train/gang.py.
  void SayStep(const StepReport& report) const {
    std::string columns;
    for (const auto& at : report.columns) {
      columns += fmt::format("{}{}:{}-{}:{:016x}", columns.empty() ? "" : ",", at.column,
                             at.shards.first, at.shards.last, HashOf(at.parameters));
    }
    Say(fmt::format("step {} generation {} workers {} rank {} loss {:.9g} columns {} samples {}",
                    report.step, report.generation, report.workers, report.rank, report.loss,
                    columns, report.samples));
  }

  const Flags& flags_;
  Clock& clock_;
  ShimLine* shim_;
  std::int64_t most_batches_;
  bool has_servers_;
  std::int64_t began_ns_ = 0, steps_ = 0, samples_ = 0, compute_ns_ = 0;
  std::int64_t said_ns_ = 0;
  std::int64_t last_step_ = 0, batches_ = 1, stepped_ns_ = 0;  // of the last report
  std::atomic<std::int64_t> checkpoint_ns_{0};                 // when one was complete
  double resize_ms_ = 0;
};

void SayScore(const ModelWorkload::Score& score, const std::vector<float>& parameters) {
  Say(fmt::format("on {} samples that were kept apart: loss {:.4f}{}", score.samples, score.loss,
                  score.classes ? fmt::format(", {:.1f} % right", 100 * score.correct) : ""));
  Say(fmt::format("hash of the parameters: {}", HashText(parameters)));
}

// Writes the model and tells the scheduler where it is.
Result<void> Keep(const OpenedWorkload& opened, const Flags& flags, ShimLine* shim, Store& store,
                  const std::vector<float>& parameters, const ModelWorkload::Score& score) {
  const auto& run = flags.run;
  const KeptModel model{{{"model", run.model},
                         {"data", run.data},
                         {"optimizer", run.optimizer},
                         {"rate", run.rate},
                         {"batch", std::to_string(run.batch)},
                         {"shards", std::to_string(run.shards)},
                         {"seed", std::to_string(run.seed)},
                         {"strategy", flags.strategy},
                         {"steps", std::to_string(flags.train.steps)}},
                        opened.workload->LayerFloats(),
                        parameters};
  if (auto written = WriteModel(flags.keep, model); !written) return written;
  const std::unique_ptr<char, decltype(&std::free)> whole(::realpath(flags.keep.c_str(), nullptr),
                                                          &std::free);
  const std::string path = whole ? whole.get() : flags.keep;
  const auto noted = store.Write(kKeptKey, path);  // else who comes later is not told where it is
  if (shim == nullptr) return {};
  contract::Kept kept{path, HashText(parameters), {{"test_loss", score.loss}}};
  if (score.classes) kept.numbers["test_correct"] = score.correct;
  shim->Say(kept);
  return {};
}

// How good a model is that was kept.
Result<int> Test(const TrainProgram& program, const Flags& flags, bool other_data) {
  const auto model = ReadModel(flags.test);
  if (!model) return tl::unexpected(model.error());
  const auto fact = [&model](const char* name) {
    const auto found = model->facts.find(name);
    return found == model->facts.end() ? std::string() : found->second;
  };
  ModelRun run = flags.run;
  run.model = fact("model");
  run.seed = std::strtoull(fact("seed").c_str(), nullptr, 10);
  if (!other_data) run.data = fact("data");
  const auto opened = program.open(run);
  if (!opened) return tl::unexpected(opened.error());
  if (opened->workload->LayerFloats() != model->layers) {
    return Fail(ErrorCode::kConflict,
                fmt::format("{} does not hold what {} has", flags.test, run.model),
                "it was kept by another version, or by another program");
  }
  Say(fmt::format("{} on {}, {} steps with --strategy {}", run.model, run.data, fact("steps"),
                  fact("strategy")));
  SayScore(opened->test(model->parameters), model->parameters);
  return 0;
}

// What there is to say when all steps are done; by then a model that is to be kept is.
void Conclude(const OpenedWorkload& opened, const Flags& flags,
              const std::vector<float>& parameters) {
  SayScore(opened.test(parameters), parameters);
  if (!flags.keep.empty()) Say("the model is kept in " + flags.keep);
  if (const auto used = opened.used ? opened.used() : ""; !used.empty()) Say(used);
}

// The job was done before this worker came.
void SayFinished(Store& store, const Flags& flags) {
  const auto step = store.Read(kFinishedKey);
  const auto kept = store.Read(kKeptKey);
  Say(fmt::format(
      "already finished at step {}; {}", step && *step ? **step : std::to_string(flags.train.steps),
      kept && *kept ? "the model is in " + **kept : "to train again, give another --folder"));
}

// Goes through a log of asynchronous updates in this process.
Result<int> ReplayLog(const OpenedWorkload& opened, const Flags& flags, int shards) {
  const auto rounds = ReadUpdateLogs(flags.replay);
  if (!rounds) return tl::unexpected(rounds.error());
  if (rounds->empty()) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("{} has no updates of a run from its first step on", flags.replay),
                "give the folder that --update-log named");
  }
  if (const int logged = rounds->front().front().shards; logged != shards) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("{} has the updates of a run with {} shards, not {}", flags.replay,
                            logged, shards),
                fmt::format("give the flags of that run, --shards {} among them", logged));
  }
  auto& workload = *opened.workload;
  const auto parameters =
      Replay(workload, BucketsOf(workload.LayerFloats(), flags.train.bucket_floats), flags.run.seed,
             *rounds);
  if (!parameters) return tl::unexpected(parameters.error());
  Say(fmt::format("replayed {} steps", rounds->back().front().to));
  SayScore(opened.test(*parameters), *parameters);
  return 0;
}

// Who leaves others behind that go on has done what it was told.
int Left(const TrainProgram& program, const Flags& flags, TrainEnd end, const Reporter& reporter) {
  const bool alone = end == TrainEnd::kPaused || !reporter.stepped();
  if (!alone) return 0;
  if (flags.news == nullptr) return Stopped(program, flags, reporter.step(), told_by);
  flags.news->paused_at = reporter.step();
  return 0;
}

Result<int> Work(const TrainProgram& program, const Flags& flags) {
  const auto strategy = ParseStrategy(flags.strategy, flags.run.shards);
  if (!strategy) return tl::unexpected(strategy.error());
  ModelRun run = flags.run;
  run.shards = strategy->grid.shards();
  const auto opened = program.open(run);
  if (!opened) return tl::unexpected(opened.error());
  if (!flags.replay.empty()) return ReplayLog(*opened, flags, run.shards);
  TrainOptions options = flags.train;
  options.strategy = *strategy;
  if (!flags.adapt_batch.empty()) {
    const auto batches = ParseBatchSpec(flags.adapt_batch);
    if (!batches) return tl::unexpected(batches.error());
    options.batches = *batches;
  }
  options.collect = true;
  options.checkpoints_asked = &checkpoints_asked;
  options.seed = flags.run.seed;
  const auto store = Meet(flags.meeting, options.mesh, told_to_leave);
  if (!store && told_to_leave) return flags.news ? 0 : Stopped(program, flags, 0, told_by);
  if (!store) return tl::unexpected(store.error());
  options.mesh.job = Variable("MUSTER_JOB_ID").empty() ? "local" : Variable("MUSTER_JOB_ID");
  std::unique_ptr<ShimLine> shim;
  if (const auto socket = Variable("MUSTER_SOCKET"); !socket.empty()) {
    auto line = ShimLine::Open(socket, {told_to_leave, checkpoints_asked},
                               kStorePatience * options.mesh.timeout_ms);
    if (!line) return tl::unexpected(line.error());
    shim = std::move(*line);
    shim->Say(contract::Ready{});
  }
  SystemClock clock;
  Reporter reporter(flags, options, clock, shim.get());
  TrainEvents events;
  events.stepped = [&](const StepReport& report) { reporter.Stepped(report); };
  events.resized = [&](const ResizeReport& report) { reporter.Resized(report); };
  events.checkpointed = [&](const CheckpointReport& report) { reporter.Checkpointed(report); };
  std::vector<float> parameters;  // after the last step
  const auto join = [&](const std::vector<std::vector<float>>& columns) {
    return opened->join ? opened->join(strategy->grid, columns) : columns.front();
  };
  events.collected = [&](const auto& columns) { parameters = join(columns); };
  if (!flags.keep.empty()) {
    events.keep = [&](const auto& columns) {
      const auto whole = join(columns);
      return Keep(*opened, flags, shim.get(), **store, whole, opened->test(whole));
    };
  }
  const auto end = Train(*opened->workload, **store, clock, options, events, told_to_leave);
  if (!end) return tl::unexpected(end.error());
  if (flags.every_step) Say(*end == TrainEnd::kFinished ? "finished" : "left");
  if (*end != TrainEnd::kFinished) return Left(program, flags, *end, reporter);
  if (flags.news != nullptr) flags.news->finished = true;
  if (flags.every_step || flags.quiet) return 0;
  if (parameters.empty()) {
    SayFinished(**store, flags);
  } else {
    Conclude(*opened, flags, parameters);
  }
  return 0;
}

// So many copies of this program, and servers where the strategy has them; the first one speaks.
// They begin together; then --min-workers counts.
int LaunchAll(const TrainProgram& program, const Flags& flags, int servers) {
  LaunchOptions options;
  options.program = program.name;
  options.workers = flags.workers;
  options.servers = servers;
  options.told = [] { return told_by.load(); };
  options.orphaned = [] { told_to_leave = true; };
  options.complain = [](const std::string& line) { Print(line, stderr); };
  options.body = [&](int index, WorkerNews& news) {
    Flags mine = flags;
    mine.quiet = flags.quiet || index > 0;
    mine.speaks = true;
    mine.news = &news;
    mine.train.server = index >= flags.workers;
    mine.train.first_workers = std::max(flags.train.first_workers, flags.workers + servers);
    return Work(program, mine);
  };
  const auto launched = Launch(options);
  if (!launched) return Complain(program.name, launched.error());
  if (launched->failed != 0) return launched->failed;
  if (launched->finished) return 0;
  if (launched->told == 0 && launched->killed != 0) return kSignalStatus + launched->killed;
  const auto step = std::max<std::int64_t>(launched->paused_at, 0);
  return Stopped(program, flags, step, launched->told != 0 ? launched->told : SIGTERM);
}

// Until it is told to end.
int KeepStore(const TrainProgram& program, const StoreFlags& flags) {
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGTERM);
  sigaddset(&ending, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ending, nullptr);
  const auto server = OpenStore(flags);
  if (!server) return Complain(program.name, server.error());
  Say((*server)->address());
  int number = 0;
  sigwait(&ending, &number);
  return 0;
}

// A number that is not less; CLI11 itself lets -1 become a very large one. `why` says what it is.
CLI::Validator AtLeast(std::int64_t least, const std::string& why) {
  const auto check = [least, why](const std::string& text) -> std::string {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    if (whole && number >= least && number <= kMostCount) return "";
    return fmt::format("{} is not {} (give a whole number from {} to {})", text, why, least,
                       kMostCount);
  };
  return {check, ""};
}

void AddFlags(CLI::App& app, const TrainProgram& program, Flags& flags) {
  app.add_option("--model", flags.run.model, program.models);
  app.add_option("--data", flags.run.data,
                 "digits[:FILE] | text:FILE | linear | teacher | modular");
  app.add_option("--optimizer", flags.run.optimizer, "adam | sgd:momentum=0.9 | ...");
  app.add_option("--rate", flags.run.rate, "constant:rate=R | cosine:rate=R,warmup=N,steps=N");
  app.add_option("--batch", flags.run.batch, "samples of a step")
      ->check(AtLeast(1, "a number of samples"));
  app.add_option("--adapt-batch", flags.adapt_batch,
                 "linear | sqrt | noise, each with :most=M: up to M batches in a step as the\n"
                 "gradient's noise allows, the rate grows by that rule; with --exact false");
  app.add_option("--steps", flags.train.steps, "steps in all")
      ->check(AtLeast(1, "a number of steps"));
  app.add_option("--seed", flags.run.seed, "of parameters and order");
  app.add_option("--shards", flags.run.shards, "parts of a batch; the most workers that help")
      ->check(CLI::Range(1, 4096));
  app.add_option("--strategy", flags.strategy,
                 "data | mirrored | pipeline:stages=S | tensor:slices=T | hybrid:...\n"
                 "| server:servers=N[,mode=async|mode=bounded,staleness=S][,round=R] | central");
  app.add_flag("--server", flags.train.server, "keep parameters, compute nothing");
  app.add_option("--exact", flags.train.exact, "false: sums in any order, a little faster");
  app.add_flag("--half", flags.train.half,
               "gradients as 16 bits on the way, errors fed back; with --exact false");
  app.add_option("--mirrors", flags.train.mirrors,
                 "copies of the optimiser's state on other workers")
      ->check(CLI::Range(0, 2));
  app.add_option("--min-workers", flags.train.min_workers, "fewer do not work but wait")
      ->envname("MUSTER_MIN_WORKERS")
      ->check(AtLeast(1, "a number of workers"));
  app.add_option("--first-workers", flags.train.first_workers,
                 "so many, of all machines, begin together; then --min-workers counts")
      ->check(AtLeast(1, "a number of workers"));
  app.add_option("--timeout-ms", flags.train.mesh.timeout_ms, "silence for so long is a loss")
      ->check(AtLeast(kLeastTimeoutMs, "a time-out in milliseconds"));
  app.add_option("--encrypt", flags.train.mesh.encrypt, "what goes over connections");
  app.add_option(
      "--wire", flags.train.mesh.wire,
      "how bulk bytes go between machines: tcp | gloo | ibverbs[:DEVICE/PORT/GID] | auto\n"
      "(ibverbs where both sides have it, else tcp)");
  app.add_option("--checkpoints", flags.train.checkpoints, "a folder that all workers see");
  app.add_option("--checkpoint-every", flags.train.checkpoint_every,
                 "steps; 0: only when all leave")
      ->check(AtLeast(0, "a number of steps"));
  app.add_option("--audit", flags.train.audit, "a file to log the samples of each step in");
  app.add_option("--update-log", flags.train.update_log,
                 "a folder that all workers see, for the order of asynchronous updates");
  app.add_option("--replay", flags.replay,
                 "such a folder: apply its updates again in one process, train nothing");
  app.add_option("--noise-every", flags.train.noise_every,
                 "steps between those whose gradient noise is measured; 0: never")
      ->check(AtLeast(0, "a number of steps"));
  app.add_option("--keep", flags.keep,
                 "write the trained model there; under Muster by default beside the checkpoints");
  app.add_option("--test", flags.test, "a model that was kept: say how good it is, train nothing");
  app.add_option("--kernels", flags.run.kernels, "auto | base | avx2 | avx512");
  AddMeetingFlags(app, flags.meeting);
  app.add_option("--workers", flags.workers,
                 "start so many on this machine; all wait for all, once")
      ->check(CLI::Range(1, 256));
  app.add_flag("--quiet", flags.quiet, "say nothing");
  app.add_option("--every-step", flags.every_step, "true: a line with a hash for each step");
  if (program.add_flags) program.add_flags(app);
}

Flags FlagsOfEnvironment(const TrainProgram& program) {
  Flags flags;
  flags.run = program.run;
  flags.train.steps = 500;
  flags.train.checkpoints = Variable("MUSTER_CHECKPOINT_DIR");
  if (!flags.train.checkpoints.empty() && !Variable("MUSTER_JOB_ID").empty()) {
    flags.keep =
        fmt::format("{}/model-{}.safetensors", flags.train.checkpoints, Variable("MUSTER_JOB_ID"));
  }
  flags.meeting = MeetingOfEnvironment();
  return flags;
}

// Something to train on where nothing was asked for: the first that is there.
void Choose(const TrainProgram& program, bool batch_too, Flags& flags) {
  const auto found = std::ranges::find_if(program.choices, [](const TrainProgram::Choice& choice) {
    return choice.needs.empty() || ::access(choice.needs.c_str(), R_OK) == 0;
  });
  if (found == program.choices.end()) return;
  flags.run.data = found->data;
  flags.run.model = found->model;
  if (batch_too) flags.run.batch = found->batch;
  if (flags.quiet || flags.every_step) return;
  Say(fmt::format("no --data and no --model: this trains with --data {} --model {} --batch {}",
                  flags.run.data, flags.run.model, flags.run.batch));
}

void LeaveWhenTold() {
  struct sigaction action = {};
  action.sa_handler = [](int number) {
    int nobody = 0;
    told_by.compare_exchange_strong(nobody, number);
    told_to_leave = true;
  };
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
}

}  // namespace

int RunTrainProgram(int argc, char** argv, const TrainProgram& program) {
  KeepFreedMemory();
  Flags flags = FlagsOfEnvironment(program);
  CLI::App app(program.about);
  AddFlags(app, program, flags);
  StoreFlags store;
  const auto* const keeps_store = AddStoreCommand(app, store);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : ExitStatus(ErrorCode::kUsage);
  }
  if (keeps_store->parsed()) return KeepStore(program, store);
  if (!flags.test.empty()) {
    const auto tested = Test(program, flags, app.count("--data") > 0);
    return tested ? *tested : Complain(program.name, tested.error());
  }
  if (flags.train.checkpoint_every > 0 && flags.train.checkpoints.empty()) {
    return Complain(program.name, {ErrorCode::kUsage, "--checkpoint-every has nowhere to write",
                                   "give --checkpoints FOLDER too, a folder that all workers see"});
  }
  if (app.count("--data") + app.count("--model") == 0) {
    Choose(program, app.count("--batch") == 0, flags);
  }
  const auto strategy = ParseStrategy(flags.strategy, flags.run.shards);
  if (!strategy) return Complain(program.name, strategy.error());
  if (Variable("MUSTER_RANK") == "0") flags.speaks = true;
  std::string made;
  auto& folder = flags.meeting.folder;
  if (folder.empty() && flags.meeting.store.empty()) {
    made = folder = std::filesystem::temp_directory_path() / ("muster-train-" + NewSecretHex(6));
  }
  std::error_code failed;
  if (flags.meeting.store.empty()) std::filesystem::create_directories(folder, failed);
  LeaveWhenTold();
  int status = 0;
  if (flags.workers > 0 && flags.workers + strategy->servers > 1 && flags.replay.empty()) {
    status = LaunchAll(program, flags, strategy->servers);
  } else {
    const auto done = Work(program, flags);
    status = done ? *done : Complain(program.name, done.error());
  }
  if (!made.empty()) RemoveFolder(made);
  return status;
}

}  // namespace muster::train
