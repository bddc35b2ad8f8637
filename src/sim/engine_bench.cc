#include "sim/engine_bench.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>

#include "base/check.h"
#include "base/machine.h"
#include "base/random.h"
#include "base/units.h"
#include "engine/cluster.h"
#include "engine/cycle.h"
#include "engine/explain.h"
#include "model/job.h"

namespace muster::sim {

using engine::Cluster;
using engine::JobId;
using engine::NodeId;
using engine::WorkerState;

namespace {

constexpr std::int64_t kGi = 1LL << 30;
constexpr std::int64_t kStartMs = 1'000'000'000'000;
constexpr std::int64_t kNodesPerZone = 2048;
constexpr std::int64_t kEmptiable = 9;  // nodes of `verdict` without protected work; ten are needed

model::Node MakeNode(std::int64_t index, const std::string& type) {
  model::Node node;
  node.name = "node-" + std::to_string(index);
  model::Gpu gpu;
  gpu.type = type;
  gpu.memory_bytes = 80 * kGi;
  gpu.nvlink_island = 0;
  for (int i = 0; i < 8; ++i) {
    gpu.numa = i / 4;
    node.gpus.push_back(gpu);
  }
  node.sockets = 2;
  node.cpu_milli = 128 * kMilli;
  node.memory_bytes = 1024 * kGi;
  node.labels = {{"rack", "rack-" + std::to_string(index / 16)},
                 {"block", "block-" + std::to_string(index / 128)},
                 {"zone", "zone-" + std::to_string(index / kNodesPerZone)}};
  return node;
}

model::Job MakeJob(std::string name, std::string queue, int minimum, int maximum, int gpus) {
  model::Job job;
  job.name = std::move(name);
  job.queue = std::move(queue);
  model::Group group;
  group.minimum = minimum;
  job.groups.push_back(group);
  model::Role role;
  role.name = "worker";
  role.count = maximum;
  role.request.gpu = {model::GpuKind::kWhole, gpus, 0, 0};
  role.request.cpu_milli = 4 * kMilli * gpus;
  role.request.memory_bytes = 16 * kGi * gpus;
  job.roles.push_back(role);
  return job;
}

model::Queue MakeQueue(std::string name, std::string parent, std::int64_t quota_gpus) {
  model::Queue queue;
  queue.name = std::move(name);
  queue.parent = std::move(parent);
  queue.quota["gpus"] = quota_gpus * kMilli;
  return queue;
}

template <typename T>
T Must(Result<T> result) {
  MUSTER_CHECK(result.has_value(), result.error().message);
  return std::move(*result);
}

// One run of one shape: what was built, and the measured part.
class Bench {
 public:
  Bench(const BenchOptions& options, Clock& clock)
      : clock_(clock), random_(options.seed), nodes_(options.nodes) {}

  void Fill(BenchResult& out);
  void Gang(BenchResult& out);
  void Reclaim(BenchResult& out);
  void Verdict(BenchResult& out);
  void Huge(BenchResult& out);

 private:
  void Build(std::vector<model::Queue> queues, const std::vector<std::string>& types);
  void Run(JobId job, const model::Job& spec, NodeId node, std::uint64_t devices);
  model::Plan Cycle(BenchResult& out, std::vector<double>& samples,
                    const std::function<void()>& event = {});
  void Sum(BenchResult& out);
  model::Job DrawJob(const std::vector<std::string>& leaves);
  std::function<void()> DrawEvent(const std::vector<std::string>& leaves);
  void LetLeave(const model::Plan& plan);

  Clock& clock_;
  Random random_;
  std::int64_t nodes_;
  std::int64_t now_ms_ = kStartMs;
  std::int64_t next_job_ = 0;
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<engine::Scheduler> scheduler_;
  std::vector<NodeId> down_;
};

void Bench::Build(std::vector<model::Queue> queues, const std::vector<std::string>& types) {
  engine::Setup setup;
  setup.queues = std::move(queues);
  setup.topologies = {{"fabric", {"zone", "block", "rack"}}};
  cluster_ = Must(Cluster::Make(std::move(setup)));
  scheduler_ = std::make_unique<engine::Scheduler>(*cluster_);
  const auto share = nodes_ / static_cast<std::int64_t>(types.size());
  for (std::int64_t i = 0; i < nodes_; ++i) {
    const auto kind =
        std::min(static_cast<std::size_t>(i / std::max<std::int64_t>(1, share)), types.size() - 1);
    Must(cluster_->AddNode(MakeNode(i, types[kind])));
  }
}

void Bench::Run(JobId job, const model::Job& spec, NodeId node, std::uint64_t devices) {
  for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(spec.roles[0].count); ++i) {
    const auto done =
        cluster_->ReportWorker({job, i}, WorkerState::kRunning, node, devices, kStartMs - 60'000);
    MUSTER_CHECK(done.has_value(), "a benchmark's worker fits its place");
  }
}

// Applies the event, if there is one, and runs the cycle that answers it.
model::Plan Bench::Cycle(BenchResult& out, std::vector<double>& samples,
                         const std::function<void()>& event) {
  const auto begin = clock_.MonotonicNs();
  if (event) event();
  model::Plan plan = scheduler_->Cycle(now_ms_);
  const auto end = clock_.MonotonicNs();
  samples.push_back(static_cast<double>(end - begin) / 1e6);
  out.decisions += static_cast<std::int64_t>(plan.actions.size() + plan.promises.size());
  out.proven &= plan.complete;
  out.settled = plan.empty();
  ++out.cycles;
  return plan;
}

void Bench::Sum(BenchResult& out) {
  out.nodes = nodes_;
  out.gpus = nodes_ * 8;
  out.placed = 0;
  out.jobs = 0;
  for (JobId id = 0; id < cluster_->job_slots(); ++id) {
    if (!cluster_->job(id).present) continue;
    ++out.jobs;
    out.placed += cluster_->job(id).active;
  }
}

void Bench::LetLeave(const model::Plan& plan) {
  for (const auto& action : plan.actions) {
    if (action.kind == model::ActionKind::kStart || action.kind == model::ActionKind::kGrow) {
      continue;
    }
    cluster_->ReportLeft({action.job, action.worker});
  }
}

void Bench::Fill(BenchResult& out) {
  std::vector<model::Queue> queues = {MakeQueue("all", "", nodes_ * 8)};
  for (int q = 0; q < 4; ++q) {
    queues.push_back(MakeQueue("all/q" + std::to_string(q), "all", nodes_ * 2));
  }
  Build(std::move(queues), {"H100"});
  for (std::int64_t i = 0; i < nodes_ * 8; ++i) {
    auto job = MakeJob("job-" + std::to_string(i), "all/q" + std::to_string(i % 4), 1, 1, 1);
    Must(cluster_->AddJob(job, kStartMs + i));
  }
  Cycle(out, out.wall_ms);
  Sum(out);
}

void Bench::Gang(BenchResult& out) {
  Build({MakeQueue("team", "", nodes_ * 8)}, {"H100"});
  auto job = MakeJob("gang", "team", static_cast<int>(nodes_), static_cast<int>(nodes_), 8);
  job.groups[0].topology = {"fabric", "zone", "block"};
  Must(cluster_->AddJob(job, kStartMs));
  Cycle(out, out.wall_ms);
  Sum(out);
}

void Bench::Reclaim(BenchResult& out) {
  Build({MakeQueue("loaned", "", nodes_ * 4), MakeQueue("owner", "", nodes_ * 4)}, {"H100"});
  for (NodeId node = 0; node < nodes_; ++node) {
    for (int used = 0; used < 8;) {
      const int gpus = static_cast<int>(random_.Between(1, std::min(4, 8 - used)));
      auto job = MakeJob("run-" + std::to_string(next_job_++), "loaned", 1, 1, gpus);
      job.priority = random_.Between(1, 99);
      const JobId id = Must(cluster_->AddJob(job, kStartMs - random_.Between(0, 86'400'000)));
      cluster_->ReportCheckpoint(id, kStartMs - random_.Between(0, 3'600'000));
      Run(id, job, node, ((1ULL << gpus) - 1) << used);
      used += gpus;
    }
  }
  for (std::int64_t i = 0; i < nodes_ * 8; ++i) {
    Must(cluster_->AddJob(MakeJob("claim-" + std::to_string(i), "owner", 1, 1, 1), kStartMs + i));
  }
  std::vector<double> cycles;
  for (int i = 0; i < 50; ++i) {
    now_ms_ += 1000;
    const auto plan = Cycle(out, cycles);
    if (plan.empty()) break;
    LetLeave(plan);
  }
  double sum = 0;
  for (const auto ms : cycles) sum += ms;
  out.wall_ms.push_back(sum);
  Sum(out);
  out.placed = cluster_->queues()[cluster_->queues().Find("owner")].held[engine::kGpuDim] / kMilli;
}

void Bench::Verdict(BenchResult& out) {
  Build({MakeQueue("crowd", "", 0), MakeQueue("fixed", "", nodes_), MakeQueue("big", "", 80)},
        {"H100"});
  for (NodeId node = 0; node < nodes_; ++node) {
    for (int i = 0; i < 8; ++i) {
      const bool guarded = i == 0 && node >= kEmptiable;
      auto job =
          MakeJob("run-" + std::to_string(next_job_++), guarded ? "fixed" : "crowd", 1, 1, 1);
      job.preemptible = !guarded;
      const JobId id = Must(cluster_->AddJob(job, kStartMs - random_.Between(0, 86'400'000)));
      Run(id, job, node, 1ULL << i);
    }
  }
  const JobId wanted = Must(cluster_->AddJob(MakeJob("wanted", "big", 10, 10, 8), kStartMs));
  Cycle(out, out.wall_ms);
  const auto begin = clock_.MonotonicNs();
  const auto why = engine::Explain(*cluster_, wanted, now_ms_);
  out.wall_ms.back() += static_cast<double>(clock_.MonotonicNs() - begin) / 1e6;
  MUSTER_CHECK(why.gate == model::Gate::kCapacity, "no room and nobody to ask");
  MUSTER_CHECK(why.fit_empty == kEmptiable, "nine nodes could be emptied, not ten");
  Sum(out);
}

model::Job Bench::DrawJob(const std::vector<std::string>& leaves) {
  const std::vector<std::string> types = {"A100", "H100", "H200"};
  const auto& queue = leaves[static_cast<std::size_t>(
      random_.Between(0, static_cast<std::int64_t>(leaves.size()) - 1))];
  const auto name = "job-" + std::to_string(next_job_++);
  const auto dice = random_.Between(1, 100);
  model::Job job;
  if (dice <= 10) {
    job = MakeJob(name, queue, 1, 1, 1);
    job.roles[0].request.gpu = {model::GpuKind::kShare, 1, random_.Between(1, 4) * 200, 0};
  } else {
    constexpr int kSizes[] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 16, 32, 64};
    const int gpus = kSizes[random_.Between(0, 11)];
    const int each = std::min(gpus, 8);
    const int workers = gpus / each;
    const bool elastic = dice <= 30;
    job = MakeJob(name, queue, workers, elastic ? 2 * workers : workers, each);
  }
  job.priority = 25 * random_.Between(1, 3);
  if (random_.Chance(30)) {
    job.roles[0].gpu_types = {types[static_cast<std::size_t>(random_.Between(0, 2))]};
  }
  return job;
}

// A submitted or finished job, a node that goes down or comes up.
std::function<void()> Bench::DrawEvent(const std::vector<std::string>& leaves) {
  const auto dice = random_.Between(1, 100);
  if (dice <= 45) {
    return [this, job = DrawJob(leaves)] { Must(cluster_->AddJob(job, now_ms_)); };
  }
  if (dice <= 90) {
    JobId id = 0;
    do {
      const auto slots = static_cast<std::int64_t>(cluster_->job_slots());
      id = static_cast<JobId>(random_.Between(0, slots - 1));
    } while (!cluster_->job(id).present || cluster_->job(id).active == 0);
    return [this, id] { cluster_->RemoveJob(id); };
  }
  if (dice > 95 && !down_.empty()) {
    const NodeId node = down_.back();
    down_.pop_back();
    return [this, node] { cluster_->SetNodeUp(node, true); };
  }
  NodeId node = 0;
  do {
    node = static_cast<NodeId>(random_.Between(0, nodes_ - 1));
  } while (!cluster_->nodes().node(node).up);
  down_.push_back(node);
  return [this, node] { cluster_->SetNodeUp(node, false); };
}

void Bench::Huge(BenchResult& out) {
  std::vector<model::Queue> queues;
  std::vector<std::string> leaves;
  for (int a = 0; a < 10; ++a) {
    const auto org = "org" + std::to_string(a);
    queues.push_back(MakeQueue(org, "", nodes_ * 8 / 20));
    for (int b = 0; b < 9; ++b) {
      const auto dept = org + "/d" + std::to_string(b);
      queues.push_back(MakeQueue(dept, org, nodes_ * 8 / 200));
      for (int c = 0; c < 10; ++c) {
        leaves.push_back(dept + "/p" + std::to_string(c));
        queues.push_back(MakeQueue(leaves.back(), dept, nodes_ * 8 / 2000));
      }
    }
  }
  Build(std::move(queues), {"A100", "H100", "H200"});
  for (std::int64_t i = 0; i < nodes_ * 10; ++i) Must(cluster_->AddJob(DrawJob(leaves), now_ms_));
  LetLeave(Cycle(out, out.wall_ms));
  for (int i = 0; i < 1000; ++i) {
    now_ms_ += 1000;
    const auto event = DrawEvent(leaves);
    LetLeave(Cycle(out, out.event_ms, event));
  }
  Sum(out);
}

struct Shape {
  std::int64_t nodes;
  std::int64_t least, most;  // numbers of nodes with which it is what it says
  int runs;
  void (Bench::*run)(BenchResult&);
};

const std::map<std::string, Shape>& Shapes() {
  constexpr std::int64_t kMost = 1'000'000;
  static const std::map<std::string, Shape> shapes = {
      {"fill", {500, 1, kMost, 15, &Bench::Fill}},
      {"gang", {512, 1, kNodesPerZone, 15, &Bench::Gang}},
      {"reclaim", {500, 2, kMost, 7, &Bench::Reclaim}},
      {"verdict", {500, kEmptiable + 1, kMost, 15, &Bench::Verdict}},
      {"huge", {10'000, 1'000, kMost, 5, &Bench::Huge}}};
  return shapes;
}

}  // namespace

std::vector<std::string> BenchShapes() {
  std::vector<std::string> names;
  for (const auto& [name, shape] : Shapes()) names.push_back(name);
  names.emplace_back(kGrowth);
  return names;
}

Result<BenchResult> RunEngineBench(const BenchOptions& options, Clock& clock) {
  const auto found = Shapes().find(options.shape);
  if (found == Shapes().end()) {
    std::string known;
    for (const auto& name : BenchShapes()) known += (known.empty() ? "" : ", ") + name;
    return Fail(ErrorCode::kUsage, "no benchmark shape " + options.shape, "one of " + known);
  }
  BenchOptions chosen = options;
  const Shape& shape = found->second;
  if (chosen.nodes == 0) chosen.nodes = shape.nodes;
  if (chosen.nodes < shape.least || chosen.nodes > shape.most) {
    return Fail(ErrorCode::kUsage, options.shape + " cannot be built with that many nodes",
                std::to_string(shape.least) + " to " + std::to_string(shape.most));
  }
  if (chosen.runs == 0) chosen.runs = found->second.runs;
  BenchResult out;
  out.shape = options.shape;
  for (int i = 0; i < chosen.runs; ++i) {
    out.decisions = 0;
    out.cycles = 0;
    out.proven = true;
    Bench bench(chosen, clock);
    (bench.*found->second.run)(out);
  }
  out.peak_rss_mb = static_cast<double>(PeakResidentKib()) / 1024;
  return out;
}

Result<std::vector<BenchResult>> RunGrowth(const BenchOptions& options, Clock& clock) {
  std::vector<BenchResult> out;
  for (const std::int64_t nodes : {100, 1'000, 10'000, 100'000}) {
    const int runs = options.runs != 0 ? options.runs : nodes > 10'000 ? 1 : 5;
    auto result = RunEngineBench({"fill", nodes, runs, options.seed}, clock);
    if (!result) return tl::unexpected(result.error());
    out.push_back(std::move(*result));
  }
  return out;
}

double Median(std::vector<double> values) { return Percentile(std::move(values), 50); }

double Percentile(std::vector<double> values, int percent) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto rank = (values.size() * static_cast<std::size_t>(percent) + 99) / 100;
  return values[std::max<std::size_t>(rank, 1) - 1];
}

}  // namespace muster::sim
