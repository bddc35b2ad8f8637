// What is written is read back equal, for any value that the files can express.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>
#include <string>
#include <vector>

#include "base/random.h"
#include "model/job_codec.h"
#include "model/queue_codec.h"
#include "model/spec_codec.h"
#include "model/vocabulary.h"

namespace muster::model {
namespace {

// Random values from one seed: a failing seed is the whole counter-example.
class AnySpec {
 public:
  explicit AnySpec(std::uint64_t seed) : random_(seed) {}

  Job AnyJob() {
    Job job;
    job.name = Name();
    job.queue = Name() + (Flip() ? "/" + Name() : "");
    job.kind = Flip() ? JobKind::kTrain : JobKind::kBuild;
    job.priority = Flip() ? kPriorityValues[Below(5)] : Number(0, 1'000);
    job.preemptible = job.kind == JobKind::kTrain && Flip();
    AddRoles(job);
    if (Flip()) job.nodes = AnyLabels();
    job.same_device = Flip();
    job.framework = static_cast<Framework>(Below(8));
    job.command = {"run", Text(), Text()};
    job.workdir = Text();
    job.image = Text();
    if (job.kind == JobKind::kBuild) job.job_template = Text();
    if (Flip()) job.env["A_" + Name().substr(0, 1)] = Text();
    if (Flip()) job.labels = AnyLabels();
    if (Flip()) {
      job.checkpoint = {Text(), std::string(kSignalNames[Below(kSignalNames.size())]), Duration(),
                        Duration(), Duration()};
    }
    if (Flip()) job.limits = {Duration(), Duration(), static_cast<int>(Number(0, 1'000))};
    if (Flip()) job.after = {{Name() + "0", static_cast<AfterCondition>(Below(3))}};
    if (Flip()) job.array = ArrayRange{Number(0, 5), Number(5, 99), Number(0, 9)};
    if (Flip()) job.preemption_delay_ms = Duration();
    if (Flip()) job.stale_grace_ms = Duration();
    if (Flip()) job.stale_grace_ms.reset();
    return job;
  }

  std::vector<Queue> AnyQueues() {
    std::vector<Queue> queues;
    for (std::int64_t i = 0, n = Number(1, 6); i < n; ++i) {
      Queue queue;
      queue.name = "q" + std::to_string(i);
      if (i > 0 && Flip()) {
        queue.parent = queues[Below(queues.size())].name;
        queue.name = queue.parent + "/" + queue.name;
      }
      queue.created_order = i;
      queue.priority = Number(0, 1'000);
      queue.quota = AnyAmounts(0);
      queue.limit = AnyAmounts(5'000'000);
      if (Flip()) queue.weight = {{"gpus", Number(0, 9'999)}, {"H100", 1}, {"memory", 2'500}};
      queue.general_weight_milli = Number(0, 5'000);
      queue.reclaim_min_runtime_ms = Duration();
      queue.preempt_min_runtime_ms = Duration();
      queue.confinement = AnyConfinement();
      if (Flip()) queue.kinds[static_cast<JobKind>(Below(4))] = {AnyConfinement(), Duration()};
      if (Flip()) queue.members["group:" + Name()] = kMemberRoleNames[Below(4)];
      queues.push_back(std::move(queue));
    }
    return queues;
  }

  ClusterFile AnyCluster() {
    ClusterFile cluster;
    for (std::int64_t i = 0, n = Number(1, 4); i < n; ++i) {
      Pool pool;
      pool.name = "p" + std::to_string(i);
      pool.driver = static_cast<PoolDriver>(Below(4));
      pool.role = static_cast<PoolRole>(Below(2));
      if (pool.driver == PoolDriver::kLocal && Flip()) {
        pool.virtual_gpus = {Number(1, 8), "virtual", Number(0, 1 << 20), Number(0, 4'000)};
      }
      if (pool.driver == PoolDriver::kSimulated) pool.nodes = {AnyNodes(), AnyNodes()};
      cluster.pools.push_back(std::move(pool));
    }
    if (Flip()) {
      cluster.topologies = {{"", {"zone", "rack", "node"}}};
    } else if (Flip()) {
      cluster.topologies = {{"a", {"rack"}}, {"b", {"row", "node", "numa", "nvlink"}}};
    }
    return cluster;
  }

 private:
  bool Flip() { return random_.Chance(50); }
  std::int64_t Number(std::int64_t low, std::int64_t high) { return random_.Between(low, high); }
  std::size_t Below(std::size_t n) {
    return static_cast<std::size_t>(Number(0, static_cast<std::int64_t>(n) - 1));
  }

  std::string Name() {
    constexpr std::array<std::string_view, 8> kNames = {"a",    "job-1", "null", "true",
                                                        "0.25", "1e5",   "A_b",  "no"};
    return std::string(kNames[Below(kNames.size())]);
  }

  std::string Text() {
    constexpr std::array<std::string_view, 14> kParts = {
        "",   "x",   " ", "\n", ": ", "#", "\"", "'", "\\", "\t", "é", "\xF0\x9F\x98\x80",
        "- ", "\x01"};
    std::string out;
    for (std::int64_t i = 0, n = Number(0, 6); i < n; ++i) out += kParts[Below(kParts.size())];
    return out;
  }

  std::int64_t Duration() { return Number(0, 1) * Number(0, 200'000'000); }

  Labels AnyLabels() { return {{"zone", Text()}, {"example.org/" + Name(), Name()}}; }

  Amounts AnyAmounts(std::int64_t more) {
    Amounts out;
    if (Flip()) out["gpus"] = more + Number(0, 100'000);
    if (Flip()) out["cpus"] = more + Number(0, 100'000);
    if (Flip()) out["memory"] = more + Number(0, std::int64_t{1} << 20) * 1024;
    if (Flip()) out["memory"] = kUnlimited;
    if (Flip()) out["H100"] = more + Number(0, 100'000);
    if (Flip()) out["fpga"] = more + Number(0, 100'000);
    if (more == 0 && out.contains("memory")) out["memory"] = 0;
    return out;
  }

  Confinement AnyConfinement() {
    Confinement out;
    if (Flip()) out.gpu_types = {"H100", "T4"};
    if (Flip()) out.nodes = AnyLabels();
    return out;
  }

  WorkerRequest AnyRequest() {
    WorkerRequest request;
    switch (Below(4)) {
      case 0:
        break;
      case 1:
        request.gpu = {GpuKind::kWhole, static_cast<int>(Number(1, 16)), 0, 0};
        break;
      case 2:
        request.gpu = {GpuKind::kShare, static_cast<int>(Number(1, 3)), Number(1, 999), 0};
        break;
      default:
        request.gpu = {GpuKind::kMemory, static_cast<int>(Number(1, 3)), 0, Number(1, 1 << 30)};
    }
    if (Flip()) request.cpu_milli = Number(0, 64'000);
    if (Flip()) request.memory_bytes = Number(0, std::int64_t{1} << 40);
    if (Flip()) request.other["fpga"] = Number(1, 4);
    return request;
  }

  NodeGroup AnyNodes() {
    NodeGroup out;
    out.count = Number(1, 100);
    out.gpus = Number(0, 8);
    if (out.gpus > 0) {
      if (Flip()) out.type = "H100";
      out.gpu_memory_bytes = Number(0, std::int64_t{1} << 36);
      out.nvlink_size = Number(0, out.gpus);
    }
    out.cpu_milli = Number(0, 96'000);
    out.memory_bytes = Number(0, std::int64_t{1} << 40);
    out.sockets = Number(1, 4);
    out.nics = Number(0, 4);
    out.nodes_per_rack = Number(0, 8);
    if (out.nodes_per_rack > 0) out.racks_per_zone = Number(0, 4);
    if (Flip()) out.other["fpga"] = Number(1, 4);
    if (Flip()) out.labels["fabric"] = Text();
    return out;
  }

  // A random tree: inner groups first, then leaves that take the roles.
  void AddRoles(Job& job) {
    const bool fixed = job.kind == JobKind::kBuild;
    job.groups.push_back({std::string(kRootGroup), -1, 1, AnyWish()});
    const auto roles = Number(1, 4);
    const bool implied = roles > 1 && Flip();  // the tree that the reader makes without `groups`
    const auto leaves = implied ? roles : Number(1, roles);
    const bool flat = leaves == 1 && Flip();
    if (implied) job.groups[0].minimum = static_cast<int>(roles);
    for (std::int64_t i = 0; !flat && i < leaves; ++i) {
      Group leaf{"r" + std::to_string(i), 0, 1, {}};
      if (!implied && Flip()) leaf.topology = AnyWish();
      if (!implied && Flip()) {
        job.groups.push_back({"inner" + std::to_string(i), 0, 1, AnyWish()});
        leaf.parent = static_cast<int>(job.groups.size()) - 1;
      }
      job.groups.push_back(std::move(leaf));
    }
    std::vector<int> leaf_at;
    for (std::size_t i = 0; i < job.groups.size(); ++i) {
      if (flat || (i > 0 && job.groups[i].name[0] == 'r')) leaf_at.push_back(static_cast<int>(i));
    }
    std::map<int, int> workers;
    for (std::int64_t i = 0; i < roles; ++i) {
      Role role;
      role.name = "r" + std::to_string(i);
      role.group = leaf_at[static_cast<std::size_t>(i) % leaf_at.size()];
      role.count = static_cast<int>(Number(1, 9));
      role.request = AnyRequest();
      if (role.request.gpu.kind != GpuKind::kNone && Flip()) role.gpu_types = {"H100", "A100"};
      if (Flip()) role.node_names = std::vector<std::string>{"n-1", Name()};
      role.priority = static_cast<int>(Number(0, 3));
      workers[role.group] += role.count;
      job.roles.push_back(std::move(role));
    }
    for (const auto& [group, count] : workers) {
      job.groups[static_cast<std::size_t>(group)].minimum =
          fixed ? count : static_cast<int>(Number(1, count));
    }
  }

  TopologyWish AnyWish() { return {Flip() ? "net" : "", Flip() ? "rack" : "", "nvlink"}; }

  Random random_;
};

template <typename Value, typename Encode, typename Decode>
void ExpectRoundTrip(const Value& value, Encode encode, Decode decode) {
  for (const auto format : {TextFormat::kYaml, TextFormat::kJson}) {
    const auto text = encode(value, format);
    const auto again = decode(text);
    if (!again) RC_FAIL(Describe(again.error()) + "\n" + text);
    if (*again != value) RC_FAIL("read back unequal:\n" + text);
  }
}

TEST(SpecRoundTrip, Jobs) {
  EXPECT_TRUE(rc::check("a job that is written is read back equal", [](std::uint64_t seed) {
    ExpectRoundTrip(AnySpec(seed).AnyJob(), EncodeJob, DecodeJob);
  }));
}

TEST(SpecRoundTrip, Queues) {
  EXPECT_TRUE(rc::check("queues that are written are read back equal", [](std::uint64_t seed) {
    ExpectRoundTrip(AnySpec(seed).AnyQueues(), EncodeQueues, DecodeQueues);
  }));
}

TEST(SpecRoundTrip, Clusters) {
  EXPECT_TRUE(rc::check("a cluster that is written is read back equal", [](std::uint64_t seed) {
    ExpectRoundTrip(AnySpec(seed).AnyCluster(), EncodeCluster, DecodeCluster);
  }));
}

}  // namespace
}  // namespace muster::model
