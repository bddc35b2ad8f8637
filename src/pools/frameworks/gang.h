// The gang as a worker's start sees it, and what that start needs.
//
// Plain values between the pool, which knows where the members are, and SetUpWorker, which knows
// what their framework wants to be told. Ranks are dense from 0. Rank 0 leads: what must exist once
// in a job (a store, a launcher, a head) is with rank 0, in the job's block of ports there.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/job.h"

namespace muster::pools {

inline constexpr int kPortsPerJob = 16;

struct Member {
  int rank = 0;
  std::string role;
  int role_rank = 0;
  std::string node;
  std::string host;    // the address at which the other members reach it
  int local_rank = 0;  // among the members on its node
  int gpus = 0;
  std::uint64_t devices = 0;  // bit n: GPU n of its node
};

struct GangView {
  std::string job_id;
  std::string job_name;
  const model::Job& spec;
  std::vector<Member> members;
  int port_base = 0;  // first of kPortsPerJob ports, free on every node of the gang
  int restart_count = 0;
  int generation = 0;
  std::string job_dir;  // a folder of the job, at the same path on every node of the gang
};

struct WorkerSetup {
  struct File {
    std::string name;  // in job_dir
    std::string body;
    bool executable = false;
  };

  std::map<std::string, std::string> env;
  std::vector<std::string> command;
  std::vector<File> files;    // to be written before the start, and again when the gang resizes
  std::uint64_t devices = 0;  // what the process may see: all of the node's where it leads others
  // It holds a place or serves the others, and does not end by itself: the job is done when the
  // workers without this mark are, and whoever runs them stops this one then.
  bool follows = false;
};

}  // namespace muster::pools
