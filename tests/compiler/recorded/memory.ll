; ModuleID = 'tests/compiler/programs/memory.cu'
source_filename = "tests/compiler/programs/memory.cu"
target datalayout = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

%struct.Inner = type { i8, i16, double }
%struct.float4 = type { float, float, float, float }
%struct.Parameter = type { i32, [2 x %struct.Inner], i64 }

@counter = addrspace(1) externally_initialized global [3 x i32] [i32 7, i32 0, i32 -2147483647], align 4
@made = addrspace(1) externally_initialized global %struct.Inner { i8 3, i16 -5, double 1.000000e-01 }, align 8
@table = addrspace(4) externally_initialized constant [5 x float] [float 5.000000e-01, float -1.500000e+00, float 3.000000e+00, float f0x1E3CE508, float 8.000000e+00], align 4
@letters = addrspace(4) externally_initialized constant [22 x i8] c"letters of a constant\00", align 1
@_ZZ1kE4tile = internal unnamed_addr addrspace(3) global [64 x [3 x i32]] undef, align 4
@_ZZ1kE4wide = internal unnamed_addr addrspace(3) global [16 x %struct.float4] undef, align 16
@dynamic = external local_unnamed_addr addrspace(3) global [0 x i8], align 16
@llvm.compiler.used = appending global [4 x ptr] [ptr addrspacecast (ptr addrspace(1) @counter to ptr), ptr addrspacecast (ptr addrspace(4) @letters to ptr), ptr addrspacecast (ptr addrspace(1) @made to ptr), ptr addrspacecast (ptr addrspace(4) @table to ptr)], section "llvm.metadata"

; Function Attrs: convergent mustprogress noinline norecurse nounwind
define dso_local ptx_kernel void @k(ptr nofree noundef readonly captures(none) %in, ptr nofree noundef captures(address) %out) local_unnamed_addr #0 {
entry:
  %own = alloca [8 x i32], align 4
  %p = alloca %struct.Parameter, align 8
  %0 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %idxprom = zext nneg i32 %0 to i64
  %arrayidx = getelementptr inbounds nuw [4 x i8], ptr %in, i64 %idxprom
  %1 = load i32, ptr %arrayidx, align 4, !tbaa !7
  %arrayidx2 = getelementptr inbounds nuw i8, ptr %arrayidx, i64 256
  %2 = load i32, ptr %arrayidx2, align 4, !tbaa !7
  %arrayidx6 = getelementptr inbounds nuw [12 x i8], ptr addrspacecast (ptr addrspace(3) @_ZZ1kE4tile to ptr), i64 %idxprom
  store i32 %1, ptr %arrayidx6, align 4, !tbaa !7
  %add4.1 = add i32 %2, %1
  %arrayidx8.1 = getelementptr inbounds nuw i8, ptr %arrayidx6, i64 4
  store i32 %add4.1, ptr %arrayidx8.1, align 4, !tbaa !7
  %mul3.2 = shl i32 %2, 1
  %add4.2 = add i32 %mul3.2, %1
  %arrayidx8.2 = getelementptr inbounds nuw i8, ptr %arrayidx6, i64 8
  store i32 %add4.2, ptr %arrayidx8.2, align 4, !tbaa !7
  %mul = shl nuw nsw i32 %0, 4
  %idx.ext = zext nneg i32 %mul to i64
  %add.ptr = getelementptr inbounds nuw [4 x i8], ptr %out, i64 %idx.ext
  %conv = trunc i32 %1 to i16
  %arrayidx10 = getelementptr inbounds nuw [2 x i8], ptr addrspacecast (ptr addrspace(3) @dynamic to ptr), i64 %idxprom
  store i16 %conv, ptr %arrayidx10, align 2, !tbaa !8
  %conv11 = sitofp i32 %2 to float
  %mul12 = fmul nnan float %conv11, 5.000000e-01
  %arrayidx14 = getelementptr inbounds nuw [4 x i8], ptr addrspacecast (ptr addrspace(3) @_ZZ1kE4wide to ptr), i64 %idxprom
  store float %mul12, ptr %arrayidx14, align 4, !tbaa !10
  tail call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %sub = sub nsw i32 63, %0
  %idxprom15 = zext i32 %sub to i64
  %arrayidx16 = getelementptr inbounds nuw [12 x i8], ptr addrspacecast (ptr addrspace(3) @_ZZ1kE4tile to ptr), i64 %idxprom15
  %rem.lhs.trunc = trunc nuw nsw i32 %0 to i16
  %rem205 = urem i16 %rem.lhs.trunc, 3
  %idxprom17 = zext nneg i16 %rem205 to i64
  %arrayidx18 = getelementptr inbounds nuw [4 x i8], ptr %arrayidx16, i64 %idxprom17
  %3 = load i32, ptr %arrayidx18, align 4, !tbaa !7
  store i32 %3, ptr %add.ptr, align 4, !tbaa !7
  %xor = xor i32 %0, 5
  %idxprom20 = zext nneg i32 %xor to i64
  %arrayidx21 = getelementptr inbounds nuw [2 x i8], ptr addrspacecast (ptr addrspace(3) @dynamic to ptr), i64 %idxprom20
  %4 = load i16, ptr %arrayidx21, align 2, !tbaa !8
  %conv22 = zext i16 %4 to i32
  %arrayidx23 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 4
  store i32 %conv22, ptr %arrayidx23, align 4, !tbaa !7
  %rem24 = and i32 %0, 15
  %idxprom25 = zext nneg i32 %rem24 to i64
  %arrayidx26 = getelementptr inbounds nuw [16 x i8], ptr addrspacecast (ptr addrspace(3) @_ZZ1kE4wide to ptr), i64 %idxprom25
  %four.sroa.0.0.copyload199 = load i32, ptr %arrayidx26, align 16, !tbaa !10
  %four.sroa.4.0.arrayidx26.sroa_idx = getelementptr inbounds nuw i8, ptr %arrayidx26, i64 4
  %four.sroa.4.0.copyload200 = load i32, ptr %four.sroa.4.0.arrayidx26.sroa_idx, align 4, !tbaa !10
  %four.sroa.5.0.arrayidx26.sroa_idx = getelementptr inbounds nuw i8, ptr %arrayidx26, i64 8
  %four.sroa.5.0.copyload201 = load i32, ptr %four.sroa.5.0.arrayidx26.sroa_idx, align 8, !tbaa !10
  %four.sroa.6.0.arrayidx26.sroa_idx = getelementptr inbounds nuw i8, ptr %arrayidx26, i64 12
  %four.sroa.6.0.copyload202 = load i32, ptr %four.sroa.6.0.arrayidx26.sroa_idx, align 4, !tbaa !10
  %xor29 = xor i32 %four.sroa.4.0.copyload200, %four.sroa.0.0.copyload199
  %xor31 = xor i32 %xor29, %four.sroa.5.0.copyload201
  %xor33 = xor i32 %xor31, %four.sroa.6.0.copyload202
  %arrayidx34 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 8
  store i32 %xor33, ptr %arrayidx34, align 4, !tbaa !7
  call void @llvm.lifetime.start.p0(ptr nonnull %own) #4
  store i32 %1, ptr %own, align 4, !tbaa !7
  %shr.1 = lshr i32 %1, 1
  %arrayidx41.1 = getelementptr inbounds nuw i8, ptr %own, i64 4
  store i32 %shr.1, ptr %arrayidx41.1, align 4, !tbaa !7
  %shr.2 = lshr i32 %1, 2
  %arrayidx41.2 = getelementptr inbounds nuw i8, ptr %own, i64 8
  store i32 %shr.2, ptr %arrayidx41.2, align 4, !tbaa !7
  %shr.3 = lshr i32 %1, 3
  %arrayidx41.3 = getelementptr inbounds nuw i8, ptr %own, i64 12
  store i32 %shr.3, ptr %arrayidx41.3, align 4, !tbaa !7
  %shr.4 = lshr i32 %1, 4
  %arrayidx41.4 = getelementptr inbounds nuw i8, ptr %own, i64 16
  store i32 %shr.4, ptr %arrayidx41.4, align 4, !tbaa !7
  %shr.5 = lshr i32 %1, 5
  %arrayidx41.5 = getelementptr inbounds nuw i8, ptr %own, i64 20
  store i32 %shr.5, ptr %arrayidx41.5, align 4, !tbaa !7
  %shr.6 = lshr i32 %1, 6
  %arrayidx41.6 = getelementptr inbounds nuw i8, ptr %own, i64 24
  store i32 %shr.6, ptr %arrayidx41.6, align 4, !tbaa !7
  %shr.7 = lshr i32 %1, 7
  %arrayidx41.7 = getelementptr inbounds nuw i8, ptr %own, i64 28
  store i32 %shr.7, ptr %arrayidx41.7, align 4, !tbaa !7
  %and = and i32 %2, 7
  %idxprom45 = zext nneg i32 %and to i64
  %arrayidx46 = getelementptr inbounds nuw [4 x i8], ptr %own, i64 %idxprom45
  store i32 %2, ptr %arrayidx46, align 4, !tbaa !7
  %and47 = and i32 %1, 7
  %idxprom48 = zext nneg i32 %and47 to i64
  %arrayidx49 = getelementptr inbounds nuw [4 x i8], ptr %own, i64 %idxprom48
  %5 = load i32, ptr %arrayidx49, align 4, !tbaa !7
  %and51 = and i32 %shr.3, 7
  %idxprom52 = zext nneg i32 %and51 to i64
  %arrayidx53 = getelementptr inbounds nuw [4 x i8], ptr %own, i64 %idxprom52
  %6 = load i32, ptr %arrayidx53, align 4, !tbaa !7
  %add54 = add i32 %6, %5
  %arrayidx55 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 12
  store i32 %add54, ptr %arrayidx55, align 4, !tbaa !7
  %rem56 = urem i32 %1, 5
  %idxprom57 = zext nneg i32 %rem56 to i64
  %arrayidx58 = getelementptr inbounds nuw [4 x i8], ptr addrspacecast (ptr addrspace(4) @table to ptr), i64 %idxprom57
  %7 = load i32, ptr %arrayidx58, align 4, !tbaa !10
  %rem60 = urem i32 %2, 21
  %idxprom61 = zext nneg i32 %rem60 to i64
  %arrayidx62 = getelementptr inbounds nuw i8, ptr addrspacecast (ptr addrspace(4) @letters to ptr), i64 %idxprom61
  %8 = load i8, ptr %arrayidx62, align 1, !tbaa !12
  %conv63 = zext i8 %8 to i32
  %add64 = add i32 %7, %conv63
  %arrayidx65 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 16
  store i32 %add64, ptr %arrayidx65, align 4, !tbaa !7
  %rem66 = urem i32 %1, 3
  %idxprom67 = zext nneg i32 %rem66 to i64
  %arrayidx68 = getelementptr inbounds nuw [4 x i8], ptr addrspacecast (ptr addrspace(1) @counter to ptr), i64 %idxprom67
  %9 = load i32, ptr %arrayidx68, align 4, !tbaa !7
  %10 = load i8, ptr addrspacecast (ptr addrspace(1) @made to ptr), align 8, !tbaa !13
  %conv69 = zext i8 %10 to i32
  %add70 = add i32 %9, %conv69
  %11 = load i16, ptr getelementptr inbounds nuw (i8, ptr addrspacecast (ptr addrspace(1) @made to ptr), i64 2), align 2, !tbaa !16
  %conv71 = sext i16 %11 to i32
  %add72 = add i32 %add70, %conv71
  %12 = load double, ptr getelementptr inbounds nuw (i8, ptr addrspacecast (ptr addrspace(1) @made to ptr), i64 8), align 8, !tbaa !17
  %mul73 = fmul double %12, 1.000000e+06
  %conv74 = fptoui double %mul73 to i32
  %add75 = add i32 %add72, %conv74
  %arrayidx76 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 20
  store i32 %add75, ptr %arrayidx76, align 4, !tbaa !7
  call void @llvm.lifetime.start.p0(ptr nonnull %p) #4
  %inner = getelementptr inbounds nuw i8, ptr %p, i64 8
  %small = getelementptr inbounds nuw i8, ptr %p, i64 10
  store i16 -2, ptr %small, align 2, !tbaa !16
  %number = getelementptr inbounds nuw i8, ptr %p, i64 16
  store double 2.500000e-01, ptr %number, align 8, !tbaa !17
  %small78 = getelementptr inbounds nuw i8, ptr %p, i64 26
  %conv79 = trunc i32 %2 to i16
  store i16 %conv79, ptr %small78, align 2, !tbaa !16
  %number80 = getelementptr inbounds nuw i8, ptr %p, i64 32
  %conv81 = uitofp i32 %1 to double
  %mul82 = fmul nnan double %conv81, 5.000000e-01
  store double %mul82, ptr %number80, align 8, !tbaa !17
  %mul84 = mul i32 %2, 3
  %and86 = and i32 %1, 1
  %idxprom87 = zext nneg i32 %and86 to i64
  %arrayidx88 = getelementptr inbounds nuw [16 x i8], ptr %inner, i64 %idxprom87
  %small89 = getelementptr inbounds nuw i8, ptr %arrayidx88, i64 2
  %13 = load i16, ptr %small89, align 2, !tbaa !16
  %add91 = add i16 %13, 3
  store i16 %add91, ptr %small89, align 2, !tbaa !16
  %14 = load i16, ptr %small, align 2, !tbaa !16
  %conv96 = sext i16 %14 to i32
  %15 = load i16, ptr %small78, align 2, !tbaa !16
  %conv100 = sext i16 %15 to i32
  %mul101 = shl nsw i32 %conv100, 1
  %add102 = add i32 %1, 4
  %add107 = add i32 %add102, %mul84
  %add110 = add i32 %add107, %conv96
  %add112 = add i32 %add110, %mul101
  %arrayidx113 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 24
  store i32 %add112, ptr %arrayidx113, align 4, !tbaa !7
  %rem114 = and i32 %0, 31
  %idxprom115 = zext nneg i32 %rem114 to i64
  %arrayidx116 = getelementptr inbounds nuw [16 x i8], ptr %in, i64 %idxprom115
  %whole.sroa.0.0.copyload = load i32, ptr %arrayidx116, align 16, !tbaa !7
  %whole.sroa.4.0.arrayidx116.sroa_idx = getelementptr inbounds nuw i8, ptr %arrayidx116, i64 4
  %whole.sroa.4.0.copyload = load i32, ptr %whole.sroa.4.0.arrayidx116.sroa_idx, align 4, !tbaa !7
  %whole.sroa.5.0.arrayidx116.sroa_idx = getelementptr inbounds nuw i8, ptr %arrayidx116, i64 8
  %whole.sroa.5.0.copyload = load i32, ptr %whole.sroa.5.0.arrayidx116.sroa_idx, align 8, !tbaa !7
  %whole.sroa.6.0.arrayidx116.sroa_idx = getelementptr inbounds nuw i8, ptr %arrayidx116, i64 12
  %whole.sroa.6.0.copyload = load i32, ptr %whole.sroa.6.0.arrayidx116.sroa_idx, align 4, !tbaa !7
  %add119 = add i32 %whole.sroa.0.0.copyload, 1
  %mul122 = shl i32 %whole.sroa.5.0.copyload, 1
  %add.ptr124 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 32
  store i32 %whole.sroa.6.0.copyload, ptr %add.ptr124, align 16, !tbaa !7
  %ref.tmp.sroa.4.0.add.ptr124.sroa_idx = getelementptr inbounds nuw i8, ptr %add.ptr, i64 36
  store i32 %add119, ptr %ref.tmp.sroa.4.0.add.ptr124.sroa_idx, align 4, !tbaa !7
  %ref.tmp.sroa.5.0.add.ptr124.sroa_idx = getelementptr inbounds nuw i8, ptr %add.ptr, i64 40
  store i32 %whole.sroa.4.0.copyload, ptr %ref.tmp.sroa.5.0.add.ptr124.sroa_idx, align 8, !tbaa !7
  %ref.tmp.sroa.6.0.add.ptr124.sroa_idx = getelementptr inbounds nuw i8, ptr %add.ptr, i64 44
  store i32 %mul122, ptr %ref.tmp.sroa.6.0.add.ptr124.sroa_idx, align 4, !tbaa !7
  %mul125 = shl nuw nsw i32 %0, 1
  %idx.ext126 = zext nneg i32 %mul125 to i64
  %add.ptr127 = getelementptr inbounds nuw [4 x i8], ptr %in, i64 %idx.ext126
  %add.ptr128 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 48
  %16 = load i64, ptr %add.ptr127, align 8
  store i64 %16, ptr %add.ptr128, align 16
  %tobool.not = icmp eq i32 %and86, 0
  %cond = select i1 %tobool.not, ptr %arrayidx, ptr %arrayidx6
  %17 = load i32, ptr %cond, align 4, !tbaa !7
  %arrayidx135 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 56
  store i32 %17, ptr %arrayidx135, align 8, !tbaa !7
  %arrayidx136 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 60
  store volatile i32 %1, ptr %arrayidx136, align 4, !tbaa !7
  %18 = load volatile i32, ptr %arrayidx136, align 4, !tbaa !7
  %add138 = add i32 %18, 1
  store volatile i32 %add138, ptr %arrayidx136, align 4, !tbaa !7
  %number140 = getelementptr inbounds nuw i8, ptr %arrayidx88, i64 8
  %19 = load double, ptr %number140, align 8, !tbaa !17
  %mul141 = fmul double %19, 4.000000e+00
  %conv142 = fptoui double %mul141 to i32
  %arrayidx143 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 28
  store i32 %conv142, ptr %arrayidx143, align 4, !tbaa !7
  call void @llvm.lifetime.end.p0(ptr nonnull %p) #4
  call void @llvm.lifetime.end.p0(ptr nonnull %own) #4
  ret void
}

; Function Attrs: mustprogress nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.start.p0(ptr captures(none)) #1

; Function Attrs: mustprogress nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.end.p0(ptr captures(none)) #1

; Function Attrs: convergent nocallback nounwind
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32) #2

; Function Attrs: mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare noundef range(i32 0, 1024) i32 @llvm.nvvm.read.ptx.sreg.tid.x() #3

attributes #0 = { convergent mustprogress noinline norecurse nounwind "no-trapping-math"="true" "stack-protector-buffer-size"="8" "target-cpu"="sm_90a" "target-features"="+ptx87,+sm_90a" "uniform-work-group-size" }
attributes #1 = { mustprogress nocallback nofree nosync nounwind willreturn memory(argmem: readwrite) }
attributes #2 = { convergent nocallback nounwind }
attributes #3 = { mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none) }
attributes #4 = { nounwind }

!llvm.module.flags = !{!0}
!llvm.ident = !{!1}
!llvm.errno.tbaa = !{!2}

!0 = !{i32 4, !"nvvm-reflect-ftz", i32 0}
!1 = !{!"clang version 23.1.0 (https://github.com/emscripten-forge/recipes 45d36c0f0278f80f0dc674dd1dc55770c59c0682)"}
!2 = !{!3, !4, i64 0}
!3 = !{!"__libc_errno", !4, i64 0}
!4 = !{!"int", !5, i64 0}
!5 = !{!"omnipotent char", !6, i64 0}
!6 = !{!"Simple C++ TBAA"}
!7 = !{!4, !4, i64 0}
!8 = !{!9, !9, i64 0}
!9 = !{!"short", !5, i64 0}
!10 = !{!11, !11, i64 0}
!11 = !{!"float", !5, i64 0}
!12 = !{!5, !5, i64 0}
!13 = !{!14, !5, i64 0}
!14 = !{!"_ZTS5Inner", !5, i64 0, !9, i64 2, !15, i64 8}
!15 = !{!"double", !5, i64 0}
!16 = !{!14, !9, i64 2}
!17 = !{!14, !15, i64 8}
