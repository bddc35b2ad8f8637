// StageCut: which layers of a model a stage of a pipeline has.
//
// A pipeline is as fast as its slowest stage, so layers are cut where the dearest stage is
// cheapest, by what they cost for one sample. Decided from the model alone: every worker decides
// the same. The result of a run does not depend on it, because layers are computed alike in any
// stage.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "train/compute/model.h"

namespace muster::train {

std::vector<std::uint64_t> LayerCosts(const Model& model);

// At least one layer for each stage; there are enough.
std::vector<LayerRange> CutByCost(std::span<const std::uint64_t> costs, int stages);

}  // namespace muster::train
