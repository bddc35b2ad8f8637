// TorchRun: the models of muster-train-torch on the data sets of the runtime, opened by their
// texts.
//
// conv: two convolutions and two dense layers, for pictures. transformer: a causal one, for text.
// Samples come in the order and the shards that built-in models get them in. Includes nothing of
// torch, so that who opens a run is compiled quickly.
#pragma once

#include <string>

#include "base/result.h"
#include "train/program.h"

namespace muster::train {

inline constexpr char kTorchModels[] = "conv:digits | conv:fashion | transformer:layers=L,...";

struct TorchFlags {
  std::string device = "cpu";
  std::string precision = "float32";
  double loss_scale = 1;
  int threads = 1;
  std::string sum = "auto";
};

// "conv:digits", "conv:fashion", "transformer:layers=2,width=64,heads=4,context=64,dropout=0.1";
// a transformer has `vocab` characters, or as many as the data has.
Result<OpenedWorkload> OpenTorchRun(const ModelRun& run, const TorchFlags& flags);

}  // namespace muster::train
