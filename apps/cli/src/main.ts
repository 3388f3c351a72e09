#!/usr/bin/env node
import { runProcess } from "./cli-process.ts";

void runProcess(process);
