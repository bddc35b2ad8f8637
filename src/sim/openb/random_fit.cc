#include "sim/openb/random_fit.h"

namespace muster::sim {

std::optional<PodPlace> RandomFit::Choose(std::span<const NodeState> nodes,
                                          std::span<const PodShape> shapes, std::uint32_t shape) {
  const PodShape& pod = shapes[shape];
  std::vector<std::size_t> fitting;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (nodes[i].Fits(pod)) fitting.push_back(i);
  if (fitting.empty()) return std::nullopt;
  PodPlace place{fitting[random_.Index(fitting.size())], 0};
  if (!pod.shares()) return place;
  const NodeState& node = nodes[place.node];
  std::vector<std::uint32_t> gpus;
  for (std::uint32_t i = 0; i < node.gpus; ++i)
    if (node.room[i] >= pod.gpu_milli) gpus.push_back(i);
  place.gpu = gpus[random_.Index(gpus.size())];
  return place;
}

}  // namespace muster::sim
