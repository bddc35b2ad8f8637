#include "train/run/workload.h"

#include "train/run/column_work.h"

namespace muster::train {

namespace {

class WholeWork final : public ColumnWork {
 public:
  explicit WholeWork(Workload& workload) : workload_(workload) {}

  std::vector<std::size_t> LayerFloats() const override { return workload_.LayerFloats(); }
  void Start(std::uint64_t seed, std::span<float> parameters) const override {
    workload_.Start(seed, parameters);
  }
  bool Forward(std::int64_t /*step*/, int /*shard*/, std::span<const float> /*parameters*/,
               Neighbours& /*neighbours*/) override {
    return true;
  }
  ShardResult Backward(std::int64_t step, int shard, std::span<const float> parameters,
                       std::span<float> gradient, Neighbours& /*neighbours*/,
                       ShardProgress& progress) override {
    return workload_.Compute(step, shard, parameters, gradient, progress);
  }

 private:
  Workload& workload_;
};

}  // namespace

Result<std::unique_ptr<ColumnWork>> Workload::Column(const Cut& cut) {
  if (cut.stages == 1 && cut.slices == 1) return std::make_unique<WholeWork>(*this);
  return Fail(ErrorCode::kInvalid, "this model cannot be cut into stages or slices",
              "choose the strategy data, mirrored, server or central");
}

}  // namespace muster::train
