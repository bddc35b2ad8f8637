// Reads the openb files: one table of nodes, one of pods.
//
// Nodes: cpu_milli, memory_mib, gpu, model. Pods: cpu_milli, memory_mib, num_gpu, gpu_milli and, in
// some files, gpu_spec: the models that will do, with | between them; empty: any. A pod asks for a
// part of one GPU or for whole ones. A model that no node has is no mistake: such a pod just fits
// nowhere.
#pragma once

#include <string>

#include "base/result.h"
#include "sim/openb/cluster.h"
#include "sim/trace/files.h"

namespace muster::sim {

Result<OpenbTrace> ReadOpenb(const std::string& nodes_path, const std::string& pods_path,
                             const TraceFiles& files = {});

}  // namespace muster::sim
