#include "sim/jobs/read_jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "base/temp_folder.h"
#include "sim/jobs/run_jobs.h"
#include "sim/past/past_file.h"
#include "sim/past/past_fixture.h"

namespace muster::sim {
namespace {

using ::testing::HasSubstr;

class ReadJobsTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) const {
    return folder_.Write(name, text);
  }
  JobTrace Read(const std::string& text) {
    auto trace = ReadJobs(Write("trace", text));
    EXPECT_TRUE(trace) << (trace ? "" : trace.error().message);
    return trace ? *trace : JobTrace{};
  }
  std::string Complaint(const std::string& text) {
    const auto trace = ReadJobs(Write("trace", text));
    return trace ? "" : Describe(trace.error());
  }

  TempFolder folder_;
};

TEST_F(ReadJobsTest, ATextIsReadWithoutAnyFile) {
  const auto trace =
      ReadJobsText("body", "name,user,queue,submit_s,gpus,duration_s\na,u,q,5,2,60\n");
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->jobs[0].submit_ms, 0);
  const auto steps = ReadJobsText("body", "a\tb\tc\td\te\tf\tg\n");
  ASSERT_FALSE(steps) << "a table beside it would be looked for";
  EXPECT_THAT(steps.error().message, HasSubstr("body has no head line"));
}

class PastTraceTest : public PastFixture {
 protected:
  PastTraceTest() {
    past_.from_ms = past_.to_ms = 500'000;
    past_.recorded = true;
  }
  void Truly(const Wish& wish, const Truth& truth) { Add(wish).truth = truth; }
  std::string Saved() const { return folder_.Write("week.past", EncodePast({past_, {}})); }

  TempFolder folder_;
};

TEST_F(PastTraceTest, JobsThatEndedAreAsLargeAndAsLongAsTheyReallyWere) {
  Truly({.queue = "a", .at_s = 10, .least = 1, .most = 4}, {20'000, 90'000, 60'000, 2'000});
  Truly({.queue = "b", .at_s = 15}, {20'000, 30'000, 10'000, 250});
  Truly({.queue = "a", .at_s = 20, .most = 3}, {40'000, 0, 60'000, 3'000});
  Truly({.queue = "a", .at_s = 30}, {40'000, 50'000, 10'000, 0});
  const auto trace = ReadJobs(Saved());
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->format, "past");
  EXPECT_EQ(trace->jobs,
            (std::vector<TraceJob>{{"job", "u-a", "a", 0, 2, 60'000, std::nullopt, ""},
                                   {"job", "u-b", "b", 5'000, 1, 10'000, std::nullopt, ""}}));
  EXPECT_EQ(trace->left_out, 2) << "one runs still, one had no GPU";
  EXPECT_EQ(trace->gpus, 4);
}

TEST_F(PastTraceTest, RivalsPlayItOnAsManyGpusAsThereWere) {
  for (const auto at_s : {10, 11}) {
    Truly({.at_s = at_s, .least = 3, .most = 3}, {20'000, 90'000, 60'000, 3'000});
  }
  ManualClock clock;
  const auto run = RunJobs({.workload = Saved(), .policy = "fifo", .gpus_per_node = 2}, clock);
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(run->nodes, 2);
  EXPECT_EQ(run->jobs[1].wait_s, 59) << "there is no room for both";
}

TEST_F(PastTraceTest, WhatCannotBePlayedIsSaid) {
  Truly({}, {0, 0, 60'000, 1'000});
  EXPECT_THAT(ReadJobs(Saved()).error().message, HasSubstr("asks for a GPU and has ended"));
  Truly({}, {20'000, 90'000, -1, 1'000});
  EXPECT_THAT(ReadJobs(Saved()).error().message, HasSubstr("week.past holds what no past"));
  const auto cut = folder_.Write("cut.past", EncodePast({past_, {}}).substr(0, 100));
  EXPECT_THAT(ReadJobs(cut).error().message, HasSubstr("cut.past: the past is cut off"));
}

TEST_F(ReadJobsTest, OurOwnFormatSaysEverything) {
  const auto trace = Read(
      "name,user,queue,submit_s,gpus,duration_s,deadline_s,model\n"
      "a,ann,vision,10.5,2,60,100,resnet\n"
      "b,bob,speech,10.5,1,0.25,,\n");
  EXPECT_EQ(trace.format, "plain");
  EXPECT_EQ(trace.jobs,
            (std::vector<TraceJob>{{"a", "ann", "vision", 0, 2, 60'000, 89'500, "resnet"},
                                   {"b", "bob", "speech", 0, 1, 250, std::nullopt, ""}}));
}

TEST_F(ReadJobsTest, PhillyHasDatesAndVirtualClusters) {
  const auto trace = Read(
      "timestamp,duration,num_gpus,gpu_time,cluster\n"
      "2020-03-01 00:00:10,66.0,1,66.0,late\n"
      "2020-02-29 23:59:50,8.0,4,32.0,early\n");
  EXPECT_EQ(trace.format, "philly");
  EXPECT_EQ(trace.jobs, (std::vector<TraceJob>{{"job-2", "", "early", 0, 4, 8'000},
                                               {"job-1", "", "late", 20'000, 1, 66'000}}));
}

TEST_F(ReadJobsTest, TiresiasCountsSeconds) {
  const auto trace = Read(
      "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n"
      "7,8,30,600,vgg,164,30\n");
  EXPECT_EQ(trace.format, "tiresias");
  EXPECT_EQ(trace.jobs,
            (std::vector<TraceJob>{{"7", "", "default", 0, 8, 164'000, std::nullopt, "vgg"}}));
}

TEST_F(ReadJobsTest, MuriCountsMilliseconds) {
  const auto trace = Read(
      "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,"
      "iteration_time,resource_time_0,resource_time_1,resource_time_2,priority\n"
      "0,8,0,100,gpt2,4,5095,91,437,0.6,419,49,0\n"
      "1,1,91,100,gpt2,4,10,91,437,0.6,419,49,0\n");
  EXPECT_EQ(trace.format, "muri");
  ASSERT_EQ(trace.jobs.size(), 2U);
  EXPECT_EQ(trace.jobs[0].duration_ms, 5095);
  EXPECT_EQ(trace.jobs[1].submit_ms, 91);
}

TEST_F(ReadJobsTest, ElasticFlowHasDeadlinesInTwoSpellings) {
  const auto one = Read(
      "job_id,submission_time,num_iteration,model_name,deadline,batch_size,num_gpu,duration\n"
      "x,100,9,bert,170,64,2,50\n");
  EXPECT_EQ(one.format, "elasticflow");
  EXPECT_EQ(one.jobs, (std::vector<TraceJob>{{"x", "", "default", 0, 2, 50'000, 70'000, "bert"}}));
  const auto two = Read(
      "job_id,submit_time,real_iteration,model_name,ddl,batch_size,num_gpu,real_duration,duration,"
      "iteration\n"
      "x,100,9,bert,170,64,2,50,3,1\n");
  EXPECT_EQ(two.jobs, one.jobs);
}

TEST_F(ReadJobsTest, ChronusCountsMinutesAndLeavesOutJobsWithoutGpus) {
  const auto trace = Read(
      "job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval,expect_time_list,"
      "expect_value_list,best_effort,job_type\n"
      "0,vc,1,8,5,vgg,7,1,11,10,0,strict\n"
      "1,vc,2,9,5,vgg,7,1,9,10,1,best\n"
      "2,vc,0,9,5,vgg,7,1,9,10,1,best\n");
  EXPECT_EQ(trace.format, "chronus");
  EXPECT_EQ(trace.left_out, 1);
  EXPECT_EQ(trace.jobs,
            (std::vector<TraceJob>{{"0", "", "vc", 0, 1, 420'000, 660'000, "vgg"},
                                   {"1", "", "vc", 60'000, 2, 420'000, std::nullopt, "vgg"}}));
}

TEST_F(ReadJobsTest, ShockwaveHasNoHeadLine) {
  const auto trace = Read("LM\trun\tdir\t--steps\t1\t999\t2\tgns\t1\t-1.000000\t1418\t5\n");
  EXPECT_EQ(trace.format, "shockwave");
  EXPECT_EQ(trace.jobs,
            (std::vector<TraceJob>{{"job-1", "", "default", 0, 2, 1'418'000, std::nullopt, "LM"}}));
}

TEST_F(ReadJobsTest, StepsOfGavelTakeTheTimeThatTheirTableSays) {
  Write("simulation_throughputs.json",
        R"json({"v100": {"('LM', 1)": {"null": 4.0},
                         "('LM', 2)": {"null": 10.0, "('A', 1)": [1, 2]}}})json");
  const auto path = Write("msr/seed0/a.trace",
                          "LM\trun\t--steps\t1\t100\t0.0\t1\n"
                          "LM\trun\t--steps\t1\t100\t7.0\t2\n"
                          "LM\trun\t--steps\t1\t100\t7.0\t16\n");
  const auto trace = ReadJobs(path);
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->format, "gavel");
  ASSERT_EQ(trace->jobs.size(), 3U);
  EXPECT_EQ(trace->jobs[0].duration_ms, 25'000);
  EXPECT_EQ(trace->jobs[1].duration_ms, 10'000);
  EXPECT_EQ(trace->jobs[2].duration_ms, 25'000) << "as with one GPU: nobody measured sixteen";
  EXPECT_EQ(trace->jobs[2].submit_ms, 7'000);
}

TEST_F(ReadJobsTest, ATableNamedAfterTheFolderOfATraceGoesFirst) {
  Write("simulation_throughputs.json", R"json({"v100": {"('LM', 1)": {"null": 4.0}}})json");
  Write("real_throughputs.json", R"json({"v100": {"('LM', 1)": {"null": 2.0}}})json");
  const auto path = Write("real/a.trace", "LM\trun\tdir\t--steps\t1\t100\t1\t1\t-1.000000\t0\n");
  const auto trace = ReadJobs(path);
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->jobs[0].duration_ms, 50'000);
}

TEST_F(ReadJobsTest, JobsThatTakeLongerThanTimeIsCountedAreRefused) {
  std::string text = "name,user,queue,submit_s,gpus,duration_s\n";
  for (int i = 0; i < 11'000; ++i) text += "a,u,q,0,1,9400000000\n";
  EXPECT_THAT(Complaint(text), HasSubstr("more than three million years"));
}

TEST_F(ReadJobsTest, WhatIsWrongIsSaidWithItsLine) {
  EXPECT_THAT(Complaint("a,b\n1,2\n"), HasSubstr("its columns are a, b"));
  EXPECT_THAT(Complaint("a\tb\n"), HasSubstr("Gavel's traces have 7 or 10, Shockwave's 12"));
  const std::string head = "name,user,queue,submit_s,gpus,duration_s\n";
  EXPECT_THAT(Complaint(head), HasSubstr("no job that asks for a GPU"));
  EXPECT_THAT(Complaint(head + "a,u,q,0,-1,5\n"), HasSubstr("trace:2: gpus is -1"));
  EXPECT_THAT(Complaint(head + "a,u,q,0,1,5\na,u,q,0,1,-5\n"), HasSubstr("trace:3: duration_s is"));
  EXPECT_THAT(Complaint(head + "a,u,q,0,1,1e10\n"), HasSubstr("at most 300 years"));
  EXPECT_THAT(Complaint(head + "a,u,q,soon,1,5\n"), HasSubstr("submit_s is no number: \"soon\""));
  EXPECT_THAT(Complaint(head + "a,u,,0,1,5\n"), HasSubstr("trace:2: the job names no queue"));
  EXPECT_THAT(Complaint("timestamp,duration,num_gpus,gpu_time,cluster\nnoon,1,1,1,c\n"),
              HasSubstr("trace:2: timestamp is no time: \"noon\""));
  const std::string gavel = "LM\trun\t--steps\t1\t100\t0.0\t1\n";
  EXPECT_THAT(Complaint(gavel), HasSubstr("put simulation_throughputs.json(.gz) into its folder"));
  Write("simulation_throughputs.json", "[]");
  EXPECT_THAT(Complaint(gavel), HasSubstr("no throughputs of a V100"));
  Write("simulation_throughputs.json", R"({"v100": {}})");
  EXPECT_THAT(Complaint(gavel), HasSubstr("trace:1: nothing says how long 100 steps of LM take"));
  Write("simulation_throughputs.json", R"json({"v100": {"('LM', 1)": {"null": 1e-9}}})json");
  EXPECT_THAT(Complaint(gavel), HasSubstr("trace:1: 100 steps of LM take more than 300 years"));
}

// Counted by another program from the same files.
struct Known {
  const char* path;
  const char* format;
  std::size_t jobs;
  std::int64_t gpus;
  std::int64_t seconds;      // of all durations, rounded down
  std::int64_t gpu_seconds;  // likewise
  std::int64_t last_s;       // submission
  std::size_t queues;
};

constexpr Known kKnown[] = {
    // clang-format off
    {"pollux/philly.csv.gz", "philly", 82247, 107235, 1080390950, 3521082502, 9408690, 15},
    {"elasticflow/elasticVpollux_e.csv", "elasticflow", 195, 572, 21791322, 33457859, 172045, 1},
    {"elasticflow/itp/195job.csv.gz", "elasticflow", 195, 572, 5055326, 19763306, 172045, 1},
    {"elasticflow/itp/cluster01.csv.gz", "elasticflow", 1595, 3728, 20289535, 81864453, 2916375, 1},
    {"elasticflow/itp/cluster02.csv.gz", "elasticflow", 5778, 11785, 132718039, 445494106, 5161376, 1},
    {"elasticflow/itp/cluster03.csv.gz", "elasticflow", 3011, 18760, 66687976, 595593077, 4263429, 1},
    {"elasticflow/itp/cluster05.csv.gz", "elasticflow", 3629, 4329, 37065933, 51491311, 5120458, 1},
    {"elasticflow/itp/cluster06.csv.gz", "elasticflow", 2396, 12429, 58543236, 445963163, 5151898, 1},
    {"elasticflow/itp/cluster10.csv.gz", "elasticflow", 260, 383, 8508681, 14484569, 2837918, 1},
    {"elasticflow/philly_103959.csv", "elasticflow", 876, 1899, 49556598, 154137879, 7910536, 1},
    {"chronus/trace_job_Philly_MIX1.csv.gz", "chronus", 30756, 42947, 481546140, 1336781280, 1209000, 11},
    {"muri/cluster_trace.csv", "muri", 400, 3766, 22861225, 220836929, 2344695, 1},
    {"muri/job_type_1.csv.gz", "muri", 992, 9346, 46489935, 420084355, 8166025, 1},
    {"muri/job_type_4.csv.gz", "muri", 992, 9346, 46489935, 420084355, 8166025, 1},
    {"muri/trace1.csv.gz", "muri", 1494, 7398, 374174936, 1379976364, 10817570, 1},
    {"muri/trace1_pr.csv.gz", "muri", 1494, 7398, 374174936, 1379976364, 0, 1},
    {"muri/trace3.csv.gz", "muri", 992, 9346, 46489935, 420084355, 8166025, 1},
    {"muri/trace3_pr.csv.gz", "muri", 992, 9346, 46489935, 420084355, 0, 1},
    {"tiresias/60_job.csv", "tiresias", 60, 170, 10705, 26624, 1779, 1},
    {"gavel/msr/seed0/0e4a51.trace.gz", "gavel", 1181, 3236, 183356734, 369328373, 7363956, 1},
    {"gavel/msr/seed0/103959.trace.gz", "gavel", 986, 2364, 41474945, 112439532, 7910536, 1},
    {"gavel/msr/seed0/11cb48.trace.gz", "gavel", 2000, 4405, 93385361, 218394340, 8799232, 1},
    {"gavel/msr/seed0/23dbec.trace.gz", "gavel", 9, 58, 31183, 226871, 188011, 1},
    {"gavel/msr/seed0/2869ce.trace.gz", "gavel", 533, 5425, 16617564, 200266616, 8141054, 1},
    {"gavel/msr/seed0/51b7ef.trace.gz", "gavel", 18, 115, 304402, 1210234, 3022240, 1},
    {"gavel/msr/seed0/6214e9.trace.gz", "gavel", 2000, 2214, 515452300, 630951199, 4184082, 1},
    {"gavel/msr/seed0/6c71a0.trace.gz", "gavel", 2000, 3270, 245678907, 277949142, 2590914, 1},
    {"gavel/msr/seed0/795a4c.trace.gz", "gavel", 3, 3, 17946, 17946, 3362, 1},
    {"gavel/msr/seed0/7f04ca.trace.gz", "gavel", 972, 4430, 331603577, 632189585, 10817570, 1},
    {"gavel/msr/seed0/925e2b.trace.gz", "gavel", 4, 25, 96461, 611738, 12313, 1},
    {"gavel/msr/seed0/b436b2.trace.gz", "gavel", 2000, 4234, 70469024, 572163888, 2722420, 1},
    {"gavel/msr/seed0/e13805.trace.gz", "gavel", 607, 2875, 37084504, 167771352, 8468723, 1},
    {"gavel/msr/seed0/ed69ec.trace.gz", "gavel", 951, 951, 108837533, 108837533, 6555771, 1},
    {"gavel/msr/seed0/ee9e8c.trace.gz", "gavel", 2000, 8587, 262237115, 729714852, 4508448, 1},
    {"gavel/physical_cluster/artifact_evaluation.trace", "gavel", 15, 18, 15666, 16767, 0, 1},
    {"gavel/physical_cluster/max_min_fairness.trace", "gavel", 96, 169, 766451, 1365003, 46317, 1},
    {"gavel/physical_cluster/medium_test.trace", "gavel", 20, 20, 163278, 163278, 0, 1},
    {"gavel/physical_cluster/minimize_makespan.trace", "gavel", 100, 175, 1026445, 1995643, 0, 1},
    {"gavel/physical_cluster/small_test.trace", "gavel", 20, 23, 1122, 1253, 0, 1},
    {"shockwave/120jobs_32gpu.trace", "shockwave", 120, 164, 496241, 711371, 5011, 1},
    {"shockwave/220jobs_64gpu.trace", "shockwave", 220, 310, 964450, 1453927, 5956, 1},
    // clang-format on
};

TEST(PublicTraces, HaveTheJobsThatAnotherProgramCounted) {
  const char* folder = std::getenv("MUSTER_TRACES");
  if (folder == nullptr) GTEST_SKIP() << "MUSTER_TRACES names no folder with the public traces";
  for (const Known& known : kKnown) {
    const auto path = std::string(folder) + "/" + known.path;
    if (!std::filesystem::exists(path)) {
      ADD_FAILURE() << path << " is not there";
      continue;
    }
    const auto trace = ReadJobs(path);
    ASSERT_TRUE(trace) << trace.error().message;
    EXPECT_EQ(trace->format, known.format) << path;
    EXPECT_EQ(trace->jobs.size(), known.jobs) << path;
    std::int64_t gpus = 0, ms = 0, gpu_ms = 0;
    std::set<std::string> queues;
    for (const auto& job : trace->jobs) {
      gpus += job.gpus;
      ms += job.duration_ms;
      gpu_ms += job.gpus * job.duration_ms;
      queues.insert(job.queue);
    }
    EXPECT_EQ(gpus, known.gpus) << path;
    EXPECT_EQ(ms / 1000, known.seconds) << path;
    EXPECT_EQ(gpu_ms / 1000, known.gpu_seconds) << path;
    EXPECT_EQ(trace->jobs.back().submit_ms, known.last_s * 1000) << path;
    EXPECT_EQ(queues.size(), known.queues) << path;
  }
}

}  // namespace
}  // namespace muster::sim
