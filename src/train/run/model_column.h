// ModelColumn: a stage of a built-in model, with one slice of each layer that is made of slices.
//
// Layers that are not made of slices are computed by every slice, alike, so that activations
// between stages never have to be put together. Summands of a cut layer go from each slice to each
// other, and all add them up in the same order. A stage gets the shapes of what it is handed from
// the layers before it.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "train/compute/loss.h"
#include "train/compute/model.h"
#include "train/run/column_work.h"

namespace muster::train {

class ModelWorkload;

class ModelColumn final : public ColumnWork {
 public:
  ModelColumn(const ModelWorkload& workload, const Cut& cut);

  std::vector<std::size_t> LayerFloats() const override;
  // Puts the parameters of this column where they lie in the whole model.
  void Place(std::span<const float> mine, std::span<float> whole) const;
  void Start(std::uint64_t seed, std::span<float> parameters) const override;
  bool Forward(std::int64_t step, int shard, std::span<const float> parameters,
               Neighbours& neighbours) override;
  ShardResult Backward(std::int64_t step, int shard, std::span<const float> parameters,
                       std::span<float> gradient, Neighbours& neighbours,
                       ShardProgress& progress) override;

 private:
  // A shard between its way forward and its way back.
  struct Flight {
    std::size_t samples = 0;
    Tape tape;
    Shape output;
    Loss loss;  // at the last stage
  };

  const Layer& At(std::size_t index) const;
  bool CutInside(std::size_t index) const;
  int NeighbourAt(int stage) const { return stage * cut_.slices + cut_.slice; }
  bool first() const { return cut_.stage == 0; }
  bool last() const { return cut_.stage + 1 == cut_.stages; }
  std::span<const float> ParametersOf(std::size_t index, std::span<const float> all) const;
  // Mine becomes the sum over all slices.
  std::optional<Matrix> SumOver(Matrix mine, std::size_t index, TagKind kind,
                                Neighbours& neighbours) const;
  std::optional<Matrix> LayerForward(std::size_t index, std::span<const float> parameters,
                                     const Matrix& input, std::vector<Saved>& saved,
                                     Neighbours& neighbours) const;
  std::optional<Matrix> LayerBackward(std::size_t index, const Flight& flight,
                                      const Matrix& output_gradient,
                                      std::span<const float> parameters, std::span<float> gradient,
                                      Neighbours& neighbours) const;
  std::optional<Flight> Land(int shard);

  const ModelWorkload& workload_;
  Cut cut_;
  LayerRange range_;
  std::vector<std::size_t> offsets_{0};  // of the layers among the parameters
  std::mutex mutex_;
  std::map<int, Flight> flights_;  // by shard
};

}  // namespace muster::train
