// A worker for tests of the training runtime: trains a small network on made-up numbers, says after
// every step what its parameters are, and does nothing else.
//
// Lines on standard output: "step S generation G workers W rank R loss L columns C:A-B:H,...
// samples N at_us T" with the shards and the hash of each column that is computed here, "resize
// generation G step S workers W planned P pause_us U at_us T", "lost how H at_us T" (closed or
// silent), and "checkpointed S"; the time is that of CLOCK_MONOTONIC. At the end "model H" for the
// whole of a built-in model, and "finished" or "left". --replay FOLDER goes through a log of
// updates instead. SIGTERM: leave at the next boundary.
//
// A test that is to hit a moment makes it last, by a file in the folder MUSTER_PROBE_CUES. While it
// is there: "slow": a step takes a tenth of a second longer; "steps": who has a step goes no
// further; "views": neither does who has claimed a view, and all others see that it is claimed;
// "parts": no part of a checkpoint that is written gets its name. Meanwhile heartbeats go on.
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <thread>

#include "base/clock.h"
#include "train/compute/matrix.h"
#include "train/exact/hash.h"
#include "train/exact/philox.h"
#include "train/members/folder_store.h"
#include "train/run/model_workload.h"
#include "train/run/replay.h"
#include "train/run/trainer.h"

namespace muster::train {
namespace {

std::atomic<bool> leave{false};

bool Cued(const char* cue) {
  const char* folder = std::getenv("MUSTER_PROBE_CUES");
  return folder != nullptr && ::access(fmt::format("{}/{}", folder, cue).c_str(), F_OK) == 0;
}

void WaitWhile(const char* cue, int most_ms = 1'000'000) {
  for (int i = 0; i < most_ms && Cued(cue); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// Claims are of views; what is read and written in other threads is not held up.
class CuedStore final : public Store {
 public:
  explicit CuedStore(const std::string& folder) : store_(folder) {}
  Result<std::string> Claim(const std::string& key, const std::string& value) override {
    auto stands = store_.Claim(key, value);
    if (key.starts_with("view-")) WaitWhile("views");
    return stands;
  }
  Result<void> Write(const std::string& key, const std::string& value) override {
    return store_.Write(key, value);
  }
  Result<std::optional<std::string>> Read(const std::string& key) override {
    return store_.Read(key);
  }

 private:
  FolderStore store_;
};

// Two layers, tanh between them, squared error against a network of the same kind that is drawn
// from another seed; and idle parameters behind, to make the state as large as is asked for.
class Probe final : public Workload {
 public:
  Probe(std::size_t idle, int batch, std::int64_t pause_us)
      : idle_(idle), batch_(batch), pause_us_(pause_us) {}

  std::string Describe() const override { return fmt::format("model probe; batch {}", batch_); }
  std::string ComputedWith() const override { return "kernels none"; }
  std::vector<std::size_t> LayerFloats() const override { return {kIn * kHidden, kHidden, idle_}; }
  void Start(std::uint64_t seed, std::span<float> parameters) const override {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const auto drawn = Philox(seed, {static_cast<std::uint32_t>(i), 0, 0, 1});
      parameters[i] = UnitFloat(drawn[0]) - 0.5F;
    }
  }
  ShardResult Compute(std::int64_t step, int shard, std::span<const float> parameters,
                      std::span<float> gradient, ShardProgress& progress) override {
    std::fill(gradient.begin(), gradient.end(), 0.0F);
    for (std::size_t i = kIn * kHidden + kHidden; i < gradient.size(); ++i) {
      gradient[i] = parameters[i] * 1e-3F;
    }
    if (pause_us_ > 0) std::this_thread::sleep_for(std::chrono::microseconds(pause_us_));
    if (!progress.Need({0, parameters.size()}) || !progress.Ready(kIn * kHidden + kHidden))
      return {};
    ShardResult out;
    for (int sample = 0; sample < batch_; ++sample) {
      const float error = Sample(step, shard, sample, parameters, gradient);
      out.loss += static_cast<double>(error) * error;
      ++out.samples;
    }
    progress.Ready(0);
    return out;
  }
  int StateFloats() const override { return 2; }
  // Adam.
  void Update(const UpdateStep& step, std::span<const float> gradient,
              std::span<const float> parameters, std::span<const float> state,
              std::span<float> new_parameters, std::span<float> new_state) const override {
    const std::size_t n = gradient.size();
    const auto power = [](double beta, std::int64_t steps) {
      return static_cast<float>(std::pow(beta, static_cast<double>(steps)));
    };
    const float first = 1 - power(0.9, step.last()), second = 1 - power(0.999, step.last());
    const float beta1 = power(0.9, step.batches), beta2 = power(0.999, step.batches);
    const float rate = 0.01F * static_cast<float>(step.rate);
    for (std::size_t i = 0; i < n; ++i) {
      const float m = beta1 * state[i] + (1 - beta1) * gradient[i];
      const float v = beta2 * state[n + i] + (1 - beta2) * gradient[i] * gradient[i];
      new_state[i] = m;
      new_state[n + i] = v;
      new_parameters[i] = parameters[i] - rate * (m / first) / (std::sqrt(v / second) + 1e-8F);
    }
  }

 private:
  static constexpr std::size_t kIn = 16;
  static constexpr std::size_t kHidden = 24;

  float Sample(std::int64_t step, int shard, int sample, std::span<const float> p,
               std::span<float> gradient) const {
    std::array<float, kIn> in{};
    for (std::size_t i = 0; i < kIn; ++i) {
      in[i] = UnitFloat(Philox(
                  99, {static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(shard),
                       static_cast<std::uint32_t>(sample), static_cast<std::uint32_t>(i)})[0]) -
              0.5F;
    }
    float truth = 0;
    for (std::size_t i = 0; i < kIn; ++i) truth += in[i] * static_cast<float>(i % 3);
    std::array<float, kHidden> hidden{};
    float out = 0;
    for (std::size_t h = 0; h < kHidden; ++h) {
      float sum = 0;
      for (std::size_t i = 0; i < kIn; ++i) sum += p[h * kIn + i] * in[i];
      hidden[h] = std::tanh(sum);
      out += p[kIn * kHidden + h] * hidden[h];
    }
    const float error = out - truth;
    for (std::size_t h = 0; h < kHidden; ++h) {
      gradient[kIn * kHidden + h] += error * hidden[h];
      const float back = error * p[kIn * kHidden + h] * (1 - hidden[h] * hidden[h]);
      for (std::size_t i = 0; i < kIn; ++i) gradient[h * kIn + i] += back * in[i];
    }
    return error;
  }

  std::size_t idle_;
  int batch_;
  std::int64_t pause_us_;
};

// From any thread: a line is written whole.
void Say(const std::string& line) {
  std::fputs((line + "\n").c_str(), stdout);
  std::fflush(stdout);
}

int Complain(const Error& error) {
  std::fputs((Describe(error) + "\n").c_str(), stderr);
  return ExitStatus(error.code);
}

struct Flags {
  TrainOptions train;
  std::string folder;
  std::string strategy = "data";
  std::string adapt_batch;
  std::size_t idle = 0;
  int batch = 4;
  std::int64_t pause_us = 0;
  bool hash = true;
  ModelRun run;
  std::string replay;
};

void AddFlags(CLI::App& app, Flags& flags) {
  auto& options = flags.train;
  app.add_option("--folder", flags.folder)->required();
  app.add_option("--secret", options.mesh.secret);
  app.add_option("--host", options.mesh.host);
  app.add_option("--address", options.mesh.address);
  app.add_option("--timeout-ms", options.mesh.timeout_ms);
  app.add_option("--share-memory", options.mesh.share_memory);
  app.add_option("--encrypt", options.mesh.encrypt);
  app.add_option("--wire", options.mesh.wire);
  app.add_option("--wire-least-bytes", options.mesh.wire_least_bytes);
  app.add_option("--throttle", options.mesh.throttle_bytes_per_s);
  app.add_option("--steps", options.steps)->required();
  app.add_option("--seed", options.seed);
  app.add_option("--shards", flags.run.shards);
  app.add_option("--strategy", flags.strategy);
  app.add_option("--adapt-batch", flags.adapt_batch);
  app.add_option("--noise-every", options.noise_every);
  app.add_option("--server", options.server);
  app.add_option("--model", flags.run.model);
  app.add_option("--data", flags.run.data);
  app.add_option("--optimizer", flags.run.optimizer);
  app.add_option("--exact", options.exact);
  app.add_option("--half", options.half);
  app.add_option("--mirrors", options.mirrors);
  app.add_option("--min-workers", options.min_workers);
  app.add_option("--first-workers", options.first_workers);
  app.add_option("--bucket-floats", options.bucket_floats);
  app.add_option("--checkpoints", options.checkpoints);
  app.add_option("--checkpoint-every", options.checkpoint_every);
  app.add_option("--audit", options.audit);
  app.add_option("--update-log", options.update_log);
  app.add_option("--replay", flags.replay);
  app.add_option("--rate", flags.run.rate);
  app.add_option("--kernels", flags.run.kernels);
  app.add_option("--idle-floats", flags.idle);
  app.add_option("--batch", flags.batch);
  app.add_option("--pause-us", flags.pause_us);
  app.add_option("--hash", flags.hash);  // false: 0 instead, to be quick
}

Result<void> ReadSpecs(Flags& flags) {
  const auto strategy = ParseStrategy(flags.strategy, flags.run.shards);
  if (!strategy) return tl::unexpected(strategy.error());
  flags.train.strategy = *strategy;
  if (flags.adapt_batch.empty()) return {};
  const auto batches = ParseBatchSpec(flags.adapt_batch);
  if (!batches) return tl::unexpected(batches.error());
  flags.train.batches = *batches;
  return {};
}

void SayCheckpoint(const CheckpointReport& report) {
  if (report.written) {
    if (report.speaks) Say(fmt::format("checkpointed {}", report.step));
    return;
  }
  const auto why = Describe(report.written.error());
  std::fputs(fmt::format("no checkpoint of step {}: {}\n", report.step, why).c_str(), stderr);
}

// Says "replayed STEP HASH".
int SayReplay(Workload& workload, const Flags& flags) {
  const auto rounds = ReadUpdateLogs(flags.replay);
  if (!rounds) return Complain(rounds.error());
  const auto parameters =
      Replay(workload, BucketsOf(workload.LayerFloats(), flags.train.bucket_floats),
             flags.train.seed, *rounds);
  if (!parameters) return Complain(parameters.error());
  Say(fmt::format("replayed {} {:016x}", rounds->empty() ? 0 : rounds->back().front().to,
                  HashOf(*parameters)));
  return 0;
}

int Main(int argc, char** argv) {
  KeepFreedMemory();
  Flags flags;
  auto& options = flags.train;
  auto& run = flags.run;
  run.model.clear();
  options.mesh.job = "probe";
  options.mesh.secret = "secret of the probe";
  CLI::App app;
  AddFlags(app, flags);
  CLI11_PARSE(app, argc, argv);
  struct sigaction action = {};
  action.sa_handler = [](int) { leave = true; };
  sigaction(SIGTERM, &action, nullptr);

  if (const auto read = ReadSpecs(flags); !read) return Complain(read.error());
  std::unique_ptr<Workload> workload =
      std::make_unique<Probe>(flags.idle, flags.batch, flags.pause_us);
  TrainEvents events;
  if (!run.model.empty()) {
    run.batch = static_cast<std::size_t>(flags.batch);
    run.seed = options.seed;
    run.shards = options.strategy.grid.shards();
    auto model = ModelWorkload::Open(run);
    if (!model) return Complain(model.error());
    options.collect = true;
    events.collected = [&options, whole = model->get()](const auto& columns) {
      Say(fmt::format("model {:016x}", HashOf(whole->Join(options.strategy.grid, columns))));
    };
    workload = std::move(*model);
  }
  if (!flags.replay.empty()) return SayReplay(*workload, flags);
  CuedStore store(flags.folder);
  SystemClock clock;
  events.stepped = [&](const StepReport& report) {
    std::string columns;
    for (const auto& at : report.columns) {
      columns +=
          fmt::format("{}{}:{}-{}:{:016x}", columns.empty() ? "" : ",", at.column, at.shards.first,
                      at.shards.last, flags.hash ? HashOf(at.parameters) : 0);
    }
    Say(fmt::format(
        "step {} generation {} workers {} rank {} loss {:.9g} columns {} samples {} at_us {}",
        report.step, report.generation, report.workers, report.rank, report.loss, columns,
        report.samples, clock.MonotonicNs() / 1000));
    if (!flags.run.model.empty())
      std::this_thread::sleep_for(std::chrono::microseconds(flags.pause_us));
    WaitWhile("slow", 100);
    WaitWhile("steps");
  };
  events.resized = [&](const ResizeReport& report) {
    Say(fmt::format("resize generation {} step {} workers {} planned {} pause_us {} at_us {}",
                    report.generation, report.step, report.workers, report.planned,
                    report.pause_ns / 1000, clock.MonotonicNs() / 1000));
  };
  events.lost = [&](const LostReport& report) {
    Say(fmt::format("lost how {} at_us {}", report.how == LostHow::kClosed ? "closed" : "silent",
                    clock.MonotonicNs() / 1000));
  };
  events.checkpointed = SayCheckpoint;
  const auto end = Train(*workload, store, clock, options, events, leave);
  if (!end) return Complain(end.error());
  Say(*end == TrainEnd::kFinished ? "finished" : "left");
  return 0;
}

}  // namespace
}  // namespace muster::train

// Comes before that of the C library for all of this program.
extern "C" int fsync(int fd) {  // NOLINT(readability-identifier-naming): the C library's name
  std::error_code failed;
  const auto file = std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", fd), failed);
  if (file.filename().string().starts_with(".draft-") &&
      file.parent_path().filename().string().starts_with("step-")) {
    muster::train::WaitWhile("parts");
  }
  return static_cast<int>(::syscall(SYS_fsync, fd));
}

int main(int argc, char** argv) { return muster::train::Main(argc, argv); }
