// Real data from files that Debian has.
//
// Digits: 1797 handwritten digits of 8 x 8 points, from the package python3-sklearn. Fashion: 70
// 000 pictures of clothes of 28 x 28 points, from dataset-fashion-mnist; MNIST itself has the same
// format. Text: the characters of any file. A file that is not there: the error says how to get it;
// nothing is ever fetched here, because a worker may have no network.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"
#include "train/data/dataset.h"

namespace muster::train {

inline constexpr char kDigitsFile[] =
    "/usr/lib/python3/dist-packages/sklearn/datasets/data/digits.csv.gz";
inline constexpr char kFetchedDigits[] = ".cache/muster/digits.csv.gz";  // in the home folder
inline constexpr char kFashionFolder[] = "/usr/share/datasets/fashion-mnist";
inline constexpr char kTextFile[] = "/usr/share/common-licenses/GPL-3";  // every Debian has it

// The file of the package, else the one that examples/train/fetch-digits keeps below the home
// folder: workers have no other folder of their user's in common with what was typed by hand.
Result<std::string> FindDigits(const std::string& home);

// Lines of 64 numbers from 0 to 16 and the digit, with commas between them; may be gzipped.
Result<TrainAndTest> OpenDigits(const std::string& file);

// train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz, t10k-images... and t10k-labels... .
Result<TrainAndTest> OpenFashion(const std::string& folder);

// A sample: `context` characters, and for each of them the next one. There is one for each place
// in the text. The last tenth of the text is for the test. Classes are the characters that occur,
// in the order of their codes.
Result<TrainAndTest> OpenText(const std::string& file, std::size_t context);

}  // namespace muster::train
