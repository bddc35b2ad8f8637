// The openb cluster as a placement policy sees it: nodes with what they have left, pods by shape.
//
// Equal requests are one shape, so that a policy judges a shape and not a pod. Amounts are integers
// (thousandths of a core and of a GPU, MiB). A pod asks for whole GPUs (1000 milli each) or for a
// part of one; whole ones take the first idle GPUs of the node. Nothing ever leaves.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace muster::sim {

inline constexpr std::int64_t kWholeGpu = 1000;  // milli
inline constexpr std::size_t kMostGpus = 16;     // of one node

struct PodShape {
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  std::uint32_t gpus = 0;
  std::int64_t gpu_milli = 0;   // of each GPU
  std::uint64_t types = ~0ULL;  // a bit for each GPU type that will do
  bool operator==(const PodShape&) const = default;

  std::int64_t total_gpu_milli() const { return gpus * gpu_milli; }
  bool shares() const { return gpus == 1 && gpu_milli < kWholeGpu; }
};

struct NodeState {
  std::int64_t cpu_milli = 0;  // free
  std::int64_t memory_mib = 0;
  std::uint32_t type = 0;
  std::uint32_t gpus = 0;
  std::array<std::int32_t, kMostGpus> room{};  // free milli by GPU
  std::uint32_t kinds = 0;                     // of pods on it, see KindOf
  std::uint32_t version = 0;                   // grows with every change

  std::span<const std::int32_t> rooms() const { return {room.data(), gpus}; }
  std::int64_t idle_milli() const;
  std::uint32_t idle_gpus() const;  // nobody is on them
  bool Offers(std::uint64_t types) const { return ((types >> type) & 1U) != 0; }
  // Whether the GPUs that it asks for are there, whatever their type.
  bool HasGpus(std::uint32_t count, std::int64_t milli) const;
  bool Fits(const PodShape& pod) const;
  // The pod takes its part of `gpu`, or the first idle GPUs where it asks for whole ones.
  void Take(const PodShape& pod, std::uint32_t gpu);
  // The GPU with the least room that is enough for this share.
  std::uint32_t TightestGpu(std::int64_t milli) const;
};

// A bit for what a pod asks of GPUs: a share, one, two, ...; 0: none.
std::uint32_t KindOf(const PodShape& pod);

struct OpenbTrace {
  std::vector<NodeState> nodes;
  std::vector<PodShape> shapes;     // distinct
  std::vector<std::uint32_t> pods;  // the shape of each, in the order of the file
  std::int64_t gpu_milli() const;   // of all nodes
};

}  // namespace muster::sim
