#!/usr/bin/env bash
#SBATCH --job-name=gmr-servers
#SBATCH --gres=gpu:1
#SBATCH --cpus-per-task=8
#SBATCH --mem=64G
#SBATCH --time=2-00
#SBATCH --output=gmr-servers-%j.log
# Runs the servers as one long job. sbatch options on the command line override those above.
#
#   sbatch serving/slurm.sh serving/one-gpu.sh
#   sbatch --gres=gpu:8 --mem=200G serving/slurm.sh serving/eight-gpus.sh
set -euo pipefail
cd "${SLURM_SUBMIT_DIR:?submit this by sbatch, in the checkout}"
HOST=0.0.0.0 exec bash "${1:-serving/one-gpu.sh}" "${@:2}"
