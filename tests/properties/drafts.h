// Drafts: random clusters and event sequences as small numbers.
//
// Every field of a draft runs from 0 to a known bound, and 0 is the plainest choice, so that one
// table per draft serves the generator of RapidCheck, which shrinks towards 0, and the seeded one
// whose plans have a golden hash. Whatever the numbers are, they mean a valid cluster: indexes
// wrap around, so that leaving out nodes, queues or events while shrinking breaks nothing.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/policy.h"
#include "model/job.h"
#include "model/node.h"
#include "model/queue.h"

namespace muster::properties {

template <typename Draft>
struct Field {
  const char* name;
  int Draft::*member;
  int high;
};

struct NodeDraft {
  int gpus = 0, type = 0, links = 0, rack = 0, memory = 0, host = 0, places = 0;
};

struct QueueDraft {
  int parent = 0, quota = 0, limit = 0, weight = 0, priority = 0, typed = 0, rest = 0;
};

struct JobDraft {
  int queue = 0, workers = 0, elastic = 0, request = 0, size = 0, host = 0, priority = 0;
  int fixed = 0, groups = 0, wish = 0, types = 0, mates = 0, delay = 0, facts = 0, stale = 0;
};

struct EventDraft {
  int kind = 0, pick = 0, slow = 0, quiet = 0;
  JobDraft job;  // what a submission submits
};

struct Scene {
  int policy = 0;
  std::vector<NodeDraft> nodes;
  std::vector<QueueDraft> queues;
  std::vector<EventDraft> events;
};

template <typename Draft>
constexpr auto Fields();

template <>
constexpr auto Fields<NodeDraft>() {
  using D = NodeDraft;
  return std::array<Field<D>, 7>{{{"gpus", &D::gpus, 4},
                                  {"type", &D::type, 2},
                                  {"links", &D::links, 3},
                                  {"rack", &D::rack, 3},
                                  {"memory", &D::memory, 1},
                                  {"host", &D::host, 2},
                                  {"places", &D::places, 3}}};
}

template <>
constexpr auto Fields<QueueDraft>() {
  using D = QueueDraft;
  return std::array<Field<D>, 7>{{{"parent", &D::parent, 4},
                                  {"quota", &D::quota, 5},
                                  {"limit", &D::limit, 9},
                                  {"weight", &D::weight, 2},
                                  {"priority", &D::priority, 3},
                                  {"typed", &D::typed, 7},
                                  {"rest", &D::rest, 5}}};
}

template <>
constexpr auto Fields<JobDraft>() {
  using D = JobDraft;
  return std::array<Field<D>, 15>{{{"queue", &D::queue, 7},
                                   {"workers", &D::workers, 3},
                                   {"elastic", &D::elastic, 3},
                                   {"request", &D::request, 9},
                                   {"size", &D::size, 3},
                                   {"host", &D::host, 2},
                                   {"priority", &D::priority, 3},
                                   {"fixed", &D::fixed, 6},
                                   {"groups", &D::groups, 5},
                                   {"wish", &D::wish, 11},
                                   {"types", &D::types, 5},
                                   {"mates", &D::mates, 3},
                                   {"delay", &D::delay, 7},
                                   {"facts", &D::facts, 2},
                                   {"stale", &D::stale, 2}}};
}

template <>
constexpr auto Fields<EventDraft>() {
  using D = EventDraft;
  return std::array<Field<D>, 4>{{{"kind", &D::kind, 23},
                                  {"pick", &D::pick, 15},
                                  {"slow", &D::slow, 3},
                                  {"quiet", &D::quiet, 5}}};
}

inline constexpr int kPolicies = 8;
inline constexpr int kThoroughPolicies = 4;  // the first of them search without bounds

enum class EventKind : std::uint8_t {
  kSubmit,
  kFinish,
  kTimePasses,
  kNodeDown,
  kNodeUp,
  kCordon,
  kDrain,
  kUncordon,
  kCheckpoint,
  kWorkerSucceeds,
  kWorkerFails,
  kHold,
};
EventKind KindOf(const EventDraft& draft);

engine::Policy MakePolicy(int policy);
model::Node MakeNode(const NodeDraft& draft, std::size_t index);
std::vector<model::Queue> MakeQueues(const std::vector<QueueDraft>& drafts);
std::vector<std::string> Leaves(const std::vector<model::Queue>& queues);
model::Job MakeJob(const JobDraft& draft, const std::vector<std::string>& leaves, std::string name);
std::vector<model::Topology> MakeTopologies();

std::string Describe(const Scene& scene);  // one line a node, queue and event

}  // namespace muster::properties
