// PastFixture: small pasts for tests, on nodes with a few GPUs.
//
// Each job is one line of a test: who, when, how many GPUs and for how long. Queues share equally
// and have no quota unless a test says so.
#pragma once

#include <gmock/gmock.h>

#include <string>
#include <utility>

#include "base/units.h"
#include "sim/past/play_past.h"

namespace muster::sim {

class PastFixture : public testing::Test {
 protected:
  explicit PastFixture(std::size_t gpus = 4) {
    auto& node = past_.nodes.emplace_back();
    node.name = "n0";
    node.gpus.resize(gpus);
    AddQueue("a");
    AddQueue("b");
  }

  model::Queue& AddQueue(const std::string& name) {
    auto& queue = past_.queues.emplace_back();
    queue.name = name;
    queue.created_order = static_cast<std::int64_t>(past_.queues.size());
    return queue;
  }

  struct Wish {
    std::string queue = "a";
    std::int64_t at_s = 0;
    int least = 1;
    int most = 1;
    std::int64_t seconds = 60;  // with all of its workers
    std::int64_t priority = 50;
    model::Checkpoint checkpoint = {};
    bool checkpoints = false;
  };
  PastJob& Add(const Wish& wish) {
    model::Job spec;
    spec.name = "job";
    spec.queue = wish.queue;
    spec.priority = wish.priority;
    spec.checkpoint = wish.checkpoint;
    spec.groups.emplace_back().minimum = wish.least;
    auto& role = spec.roles.emplace_back();
    role.count = wish.most;
    role.request.gpu = {model::GpuKind::kWhole, 1, 0, 0};
    auto& job = past_.jobs.emplace_back();
    job.id = past_.jobs.size();
    job.spec = std::make_shared<const model::Job>(std::move(spec));
    job.user = "u-" + wish.queue;
    job.submitted_ms = wish.at_s * 1000;
    job.work = wish.seconds * 1000 * wish.most * kMilli;
    job.checkpoints = wish.checkpoints;
    return job;
  }
  Played Play(const engine::Policy& policy = {}) {
    auto played = PlayPast(past_, policy);
    EXPECT_TRUE(played) << (played ? "" : played.error().message);
    return played ? *played : Played{};
  }

  Past past_;
};

}  // namespace muster::sim
